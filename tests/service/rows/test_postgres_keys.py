"""Keys of PostgreSQL tables that others made: compared as upstream compares them, or refused by name."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from ordering.errors import RowCountError, TargetError
from sinks.postgres.writer import BULK_ROWS
from sinks.steps import Step
from tests.service.local import LocalFeed
from tests.service.messages import ddl, delete, insert, keyed, update, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
BULK = BULK_ROWS + 20
ND = "CREATE COLLATION d.nd (provider = icu, locale = 'und-u-ks-level1', deterministic = false);"


@pytest.fixture
def feed(own_database: str, tmp_path: Path) -> Iterator[LocalFeed]:
    cells, topic = PostgresCells(own_database), f"local-{uuid4().hex[:12]}"
    yield LocalFeed(None, "nowhere:1", topic, own_database, cells, tmp_path)  # type: ignore[arg-type]
    cells.close()


@pytest.fixture(params=["snapshot", "transaction", "row"])
def consistent(request: pytest.FixtureRequest, feed: LocalFeed) -> LocalFeed:
    return feed.with_(target={"consistency": request.param})


def made(feed: LocalFeed, statements: str) -> None:
    query = feed.cells.query  # type: ignore[union-attr]
    query("CREATE SCHEMA d")
    query(statements)


def found(feed: LocalFeed) -> dict[str, str]:
    rows = feed.cells.query("SELECT k::text AS k, v FROM d.t")  # type: ignore[union-attr]
    assert len({row["k"] for row in rows}) == len(rows)
    return {row["k"]: row["v"] for row in rows}


def uuids(count: int) -> list[str]:
    return [f"a{n:07x}-0000-4000-8000-{n:012x}" for n in range(count)]


def words(count: int) -> list[str]:
    return [f"a{n}" for n in range(count)]


def large(count: int) -> list[str]:
    return [str(1234567890123456700 + n) for n in range(count)]


MANY = {
    "CHAR(36)": uuids,
    "CHAR(12)": words,
    "VARCHAR(12)": words,
    "TEXT": words,
    "NAME": words,
    "d.nd_text": words,
    "d.word": words,
    "d.short": words,
    "UUID": uuids,
    "NUMERIC(20,0)": large,
    "NUMERIC": large,
    "d.amount": lambda count: [f"{n}.50" for n in range(count)],
    "BIGINT": large,
    "DOUBLE PRECISION": lambda count: [f"{n}.25" for n in range(count)],
    "REAL": lambda count: [f"{n}.25" for n in range(count)],
    "TIMESTAMP(3)": lambda count: [f"2026-01-01 00:{n // 60:02}:{n % 60:02}.125" for n in range(count)],
    "DATE": lambda count: [f"{2000 + n // 336}-{n % 336 // 28 + 1:02}-{n % 28 + 1:02}" for n in range(count)],
    "TIME(3)": lambda count: [f"{n // 60:02}:{n % 60:02}:00.125" for n in range(count)],
    "INTERVAL(3)": lambda count: [f"{n // 60:02}:{n % 60:02}:30" for n in range(count)],
}
TYPES = (
    f"{ND} CREATE DOMAIN d.nd_text AS text COLLATE d.nd; CREATE DOMAIN d.word AS char(9); CREATE DOMAIN d.short AS"
    " d.word; CREATE DOMAIN d.amount AS numeric(20,2);"
)


@pytest.mark.cells("kind", "count")
@pytest.mark.parametrize("count", [60, BULK])
@pytest.mark.parametrize("kind", sorted(MANY))
def test_each_row_is_found_and_no_other(feed: LocalFeed, kind: str, count: int) -> None:
    made(feed, f"{TYPES} CREATE TABLE d.t (k {kind} PRIMARY KEY, v INT NOT NULL)")
    keys = MANY[kind](count)
    feed.send([*(keyed(insert("d.t", 1, k=k, v=n), "k") for n, k in enumerate(keys)), *watermarks(1)])
    feed.apply()
    spelled = {v: k for k, v in found(feed).items()}
    assert len(spelled) == count
    gone, changed = range(0, count, 3), range(1, count, 3)
    feed.send(keyed(delete("d.t", 2, k=keys[n], v=n), "k") for n in gone)
    feed.send(keyed(update("d.t", 2, {"v": n}, k=keys[n], v=-n), "k") for n in changed)
    feed.send(watermarks(2))
    feed.apply()
    assert found(feed) == {spelled[n]: -n if n in changed else n for n in range(count) if n not in gone}


def test_the_case_of_the_report(consistent: LocalFeed) -> None:
    """A UUID's row is deleted, and a neighbour whose key is its first letter stays."""
    made(consistent, "CREATE TABLE d.t (k CHAR(36) PRIMARY KEY, v INT)")
    uuid = uuids(1)[0]
    rows = [keyed(insert("d.t", 1, k=k, v=1), "k") for k in (uuid, "a")]
    consistent.send([*rows, *watermarks(1)])
    consistent.apply()
    consistent.send([keyed(delete("d.t", 2, k=uuid, v=1), "k"), *watermarks(2)])
    consistent.apply()
    assert {k.rstrip() for k in found(consistent)} == {"a"}


def test_texts_that_fold_become_numbers(feed: LocalFeed) -> None:
    """No regular expression goes by a collation that is not deterministic: the DDL ended with an error."""
    made(feed, f"{ND} CREATE TABLE d.t (k INT PRIMARY KEY, v VARCHAR(9) COLLATE d.nd)")
    feed.send([
        keyed(insert("d.t", 1, k=1, v="12"), "k"), ddl("d.t", 2, "ALTER TABLE `t` MODIFY COLUMN `v` BIGINT"),
        *watermarks(3),
    ])  # fmt: skip
    feed.apply()
    assert found(feed) == {"1": 12}


FOLDED = {
    "TEXT COLLATE d.nd": ("a", "A"),
    "public.citext": ("a", "A"),
    "d.nd_text": ("a", "A"),
}
REFUSED = {
    "UUID": (uuids(1)[0], uuids(1)[0].upper(), "as PostgreSQL spells"),
    "CHAR(9)": ("b", "b ", "ends with a blank"),
    "BIGINT": ("7", "007", "no whole number"),
    "NUMERIC(9,0)": ("7", "007", "no number"),
    "DOUBLE PRECISION": ("1234567890123456800", "1234567890123456801", "64-bit float"),
    "NAME": ("n" * 63, "n" * 64, "63 bytes"),
    "NUMERIC(9,-2)": ("100", "123", "digits behind the point"),
}


@pytest.mark.cells("kind", ("consistent", "count"), "second")
@pytest.mark.parametrize("second", [1, 2])
@pytest.mark.parametrize("count", [2, BULK])
@pytest.mark.parametrize("kind", sorted(FOLDED))
def test_what_the_target_folds_is_refused(consistent: LocalFeed, kind: str, count: int, second: int) -> None:
    extension = "CREATE EXTENSION citext WITH SCHEMA public;" if "citext" in kind else ""
    made(consistent, f"{TYPES} {extension} CREATE TABLE d.t (k {kind} PRIMARY KEY, v INT)")
    one, other = FOLDED[kind]
    many = [keyed(insert("d.t", 1, k=f"n{n}", v=n), "k") for n in range(count - 2)]
    consistent.send([keyed(insert("d.t", 1, k=one, v=-1), "k"), *many])
    if second > 1:
        consistent.send(watermarks(1))
        consistent.apply()
    more = [keyed(insert("d.t", second, k=f"m{n}", v=n), "k") for n in range(count - 2)]
    consistent.send([keyed(insert("d.t", second, k=other, v=-2), "k"), *more, *watermarks(2)])
    error = consistent.failing(TargetError)
    assert error.exit_code == 4
    assert "d.t" in f"{error.fact} {error.where}"
    assert found(consistent).get(other) is None


@pytest.mark.cells("kind", "count")
@pytest.mark.parametrize("count", [2, BULK])
@pytest.mark.parametrize("kind", sorted(FOLDED))
def test_a_folded_neighbour_is_not_deleted(feed: LocalFeed, kind: str, count: int) -> None:
    extension = "CREATE EXTENSION citext WITH SCHEMA public;" if "citext" in kind else ""
    made(feed, f"{TYPES} {extension} CREATE TABLE d.t (k {kind} PRIMARY KEY, v INT)")
    feed.cells.query("INSERT INTO d.t VALUES ('A', 1)")  # type: ignore[union-attr]
    feed.send([*(keyed(delete("d.t", 1, k=k, v=1), "k") for k in ["a", *words(count - 1)]), *watermarks(1)])
    feed.apply()
    assert found(feed) == {"A": 1}


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_what_the_type_would_change_is_refused(feed: LocalFeed, kind: str) -> None:
    made(feed, f"CREATE TABLE d.t (k {kind} PRIMARY KEY, v INT)")
    one, other, fact = REFUSED[kind]
    feed.send([keyed(insert("d.t", 1, k=one, v=1), "k"), *watermarks(1)])
    feed.apply()
    feed.send([keyed(insert("d.t", 2, k=other, v=2), "k"), *watermarks(2)])
    assert fact in feed.failing(TargetError).fact
    assert list(found(feed).values()) == [1]


@pytest.mark.parametrize("kind", ["BIT VARYING(9)", "MONEY", "JSONB", "TEXT[]", "INET"])
def test_keys_of_types_that_are_not_compared_as_upstream_are_refused(feed: LocalFeed, kind: str) -> None:
    made(feed, f"CREATE TABLE d.t (k {kind} PRIMARY KEY, v INT)")
    feed.send([keyed(delete("d.t", 1, k="1", v=1), "k"), *watermarks(1)])
    error = feed.failing(TargetError)
    assert "table d.t" in error.fact
    assert 'ALTER TABLE "d"."t" ALTER COLUMN "k" TYPE text' in error.hint


@pytest.mark.cells(("consistent", "count"), "how", "own")
@pytest.mark.parametrize("how", ["ALWAYS", "BY DEFAULT"])
@pytest.mark.parametrize("count", [3, 1200])
@pytest.mark.parametrize("own", ["", ", UNIQUE (w)", ", own TEXT DEFAULT 'x'"])
def test_identity_columns_are_written(consistent: LocalFeed, how: str, count: int, own: str) -> None:
    made(consistent, f"CREATE TABLE d.t (k INT GENERATED {how} AS IDENTITY PRIMARY KEY, v INT, w INT{own})")
    keys = range(5000, 5000 + count)
    consistent.send([*(keyed(insert("d.t", 1, k=k, v=1, w=k), "k") for k in keys), *watermarks(1)])
    consistent.apply()
    assert found(consistent) == {str(k): 1 for k in keys}
    changed = (keyed(update("d.t", 2, {"v": 1}, k=k, v=2, w=k), "k") for k in keys[1:])
    consistent.send([keyed(delete("d.t", 2, k=5000, v=1, w=5000), "k"), *changed, *watermarks(2)])
    consistent.apply()
    assert found(consistent) == {str(k): 2 for k in keys[1:]}


def test_a_key_that_the_target_computes_is_refused(feed: LocalFeed) -> None:
    made(feed, "CREATE TABLE d.t (k INT GENERATED ALWAYS AS (v + 1) STORED PRIMARY KEY, v INT)")
    feed.send([keyed(insert("d.t", 1, k=7, v=1), "k"), *watermarks(1)])
    error = feed.failing(TargetError)
    assert "computes its key's column 'k'" in error.fact
    assert "DROP EXPRESSION" in error.hint


UNFIT = {
    "unlogged": ("CREATE UNLOGGED TABLE d.t (k INT PRIMARY KEY, v INT)", "SET LOGGED"),
    "inherited": (
        (
            "CREATE TABLE d.t (k INT PRIMARY KEY, v INT); CREATE TABLE public.c () INHERITS (d.t);"
            " INSERT INTO public.c VALUES (1, 1)"
        ),
        "NO INHERIT",
    ),
    "rule": (
        (
            "CREATE TABLE d.t (k INT PRIMARY KEY, v INT); CREATE RULE r AS ON DELETE TO d.t DO INSTEAD NOTHING;"
            " ALTER TABLE d.t ENABLE ALWAYS RULE r"
        ),
        "DISABLE RULE",
    ),
    "trigger": (
        (
            "CREATE TABLE d.t (k INT PRIMARY KEY, v INT); CREATE FUNCTION d.f() RETURNS trigger LANGUAGE plpgsql"
            " AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER g BEFORE DELETE ON d.t FOR EACH ROW EXECUTE FUNCTION"
            " d.f(); ALTER TABLE d.t ENABLE ALWAYS TRIGGER g"
        ),
        "DISABLE TRIGGER",
    ),
    "unlogged partition": (
        (
            "CREATE TABLE d.t (k INT PRIMARY KEY, v INT) PARTITION BY RANGE (k);"
            " CREATE UNLOGGED TABLE d.p PARTITION OF d.t FOR VALUES FROM (0) TO (9)"
        ),
        "SET LOGGED",
    ),
}


@pytest.mark.parametrize("case", sorted(UNFIT))
def test_a_table_that_can_not_be_written_exactly_is_refused(feed: LocalFeed, case: str) -> None:
    statements, hint = UNFIT[case]
    made(feed, statements)
    feed.send([keyed(delete("d.t", 1, k=1, v=1), "k"), *watermarks(1)])
    error = feed.failing(TargetError)
    assert error.exit_code == 4
    assert "table d.t" in error.fact
    assert hint in error.hint
    assert feed.checkpoint() < 1 << 60


def test_more_rows_than_keys_roll_the_window_back(feed: LocalFeed) -> None:
    """A key that is unique no more, in a catalog that says so: what was read of it is out of date."""
    made(feed, "CREATE TABLE d.t (k INT PRIMARY KEY, v INT)")
    feed.send([keyed(insert("d.t", 1, k=1, v=1), "k"), *watermarks(1)])
    feed.apply()
    feed.send([keyed(delete("d.t", 2, k=1, v=1), "k"), *watermarks(2)])

    def spoil(_: object) -> None:
        feed.cells.query("ALTER TABLE d.t DROP CONSTRAINT IF EXISTS t_pkey")  # type: ignore[union-attr]
        feed.cells.query("INSERT INTO d.t SELECT 1, 2 WHERE (SELECT count(*) FROM d.t) < 3")  # type: ignore[union-attr]

    with pytest.raises(RowCountError, match=r"at most 1 rows of d\.t changed") as caught:
        feed.lives(lambda step: spoil(step) if step is Step.READ else None)
    assert caught.value.exit_code == 4
    assert len(feed.cells.query("SELECT * FROM d.t")) >= 2  # type: ignore[union-attr]


def test_rows_that_row_security_hides_are_not_passed_over(postgres_feed: LocalFeed) -> None:
    """A DELETE of one would find nothing, and change nothing."""
    role = f"u{postgres_feed.topic[-8:]}"
    made(postgres_feed, "CREATE TABLE d.t (k INT PRIMARY KEY, v INT); INSERT INTO d.t VALUES (1, 1)")
    parts = urlsplit(postgres_feed.uri)
    with psycopg.connect(postgres_feed.uri, autocommit=True) as owner:
        for statement in (
            f"CREATE ROLE {role} LOGIN PASSWORD 'u' IN ROLE {parts.username}",  # our own tables may be there already
            "ALTER TABLE d.t ENABLE ROW LEVEL SECURITY; ALTER TABLE d.t FORCE ROW LEVEL SECURITY",
            "CREATE POLICY hiding ON d.t USING (k > 5)",
        ):
            owner.execute(statement.encode())
    postgres_feed.uri = f"postgresql://{role}:u@{parts.hostname}:{parts.port}{parts.path}"
    postgres_feed.send([keyed(delete("d.t", 1, k=1, v=1), "k"), *watermarks(1)])
    error = postgres_feed.failing(TargetError)
    assert "row security that hides rows of d.t" in error.fact
    assert "BYPASSRLS" in error.hint
