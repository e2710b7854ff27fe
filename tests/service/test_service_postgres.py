"""What is PostgreSQL's own: leadership by locks, rights, names, its ways of writing rows, transactional DDL."""

from collections.abc import Callable, Iterator
from contextlib import closing
from uuid import uuid4

import psycopg
import pytest

from consumer.embedded import PostgresServer
from ordering.errors import LeadershipLostError, TargetBusyError, TargetError, TargetUnreachableError
from ordering.events import Half, TableName
from ordering.progress import Progress
from sinks.opening import open_target
from sinks.postgres.write import BULK_ROWS
from sinks.refusal import RowRefusedError
from sinks.target import Target
from sinks.values import ValueRules
from tests.service.landing import Landing
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
Rows = list[list[str | None]]
TRIGGER = """CREATE FUNCTION d.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER tr AFTER INSERT ON d.p FOR EACH ROW EXECUTE FUNCTION d.f()"""


@pytest.fixture
def own(postgres_server: PostgresServer) -> Iterator[str]:
    """The URI of a database of the test's own."""
    name = f"own_{uuid4().hex[:10]}"
    with psycopg.connect(postgres_server.uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0".encode())
        yield postgres_server.uri_of(name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def landing(own: str) -> Iterator[Landing]:
    cells = PostgresCells(own)
    target = open_target(own, ValueRules())
    yield Landing(target, cells, "d")
    target.close()
    cells.close()


def rows(count: int, value: str = "x") -> Rows:
    return [[str(i), value] for i in range(count)]


def values(landing: Landing, column: str = "v", table: str = "t") -> list[object]:
    return [row[column] for row in landing.read(table)]


def plain_user(own: str, *grants: str) -> str:
    """The URI of a user without rights but these, on the test's database."""
    name = f"user_{uuid4().hex[:10]}"
    with psycopg.connect(own, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'pass'".encode())
        for grant in grants:
            connection.execute(grant.format(user=name, database=connection.info.dbname).encode())
    return own.replace("postgres:postgres@", f"{name}:pass@")


class TestLeadership:
    def test_a_successor_ends_the_leader(self, landing: Landing, own: str) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        landing.target._begin()
        landing.target.check_epoch(landing.lease)  # in the middle of a transaction, its locks held
        with closing(open_target(own, ValueRules())) as successor:
            successor.connect()
            assert successor.claim("d", Progress()).epoch == landing.lease.epoch + 1
            with pytest.raises(TargetUnreachableError):
                landing.write("t", ["id", "v"], rows(1))
            landing.target.close()
            landing.target.connect()
            with pytest.raises(LeadershipLostError):
                landing.write("t", ["id", "v"], rows(1))
            with pytest.raises(LeadershipLostError):
                landing.target.claim("d", landing.progress, landing.lease)
        assert values(landing) == []

    def test_it_stays_the_leader_over_a_lost_connection(self, landing: Landing) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        landing.cells.query(  # type: ignore[attr-defined]
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ticdc-reconciler'"
            " AND datname = current_database()"
        )
        with pytest.raises(TargetUnreachableError):
            landing.write("t", ["id", "v"], rows(1))
        landing.target.close()
        landing.target.connect()
        landing.lease = type(landing.lease)("d", landing.target.claim("d", landing.progress, landing.lease).epoch)
        landing.write("t", ["id", "v"], rows(1))
        assert values(landing) == ["x"]

    def test_two_changefeeds_leave_each_other_alone(self, landing: Landing, own: str) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        with closing(open_target(own, ValueRules())) as other:
            other.connect()
            other.claim("other", Progress())
            landing.write("t", ["id", "v"], rows(1))

    def test_a_row_that_someone_else_locks(self, landing: Landing, own: str) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        landing.write("t", ["id", "v"], rows(1))
        landing.target._db.run("SET lock_timeout = 50")  # type: ignore[attr-defined]
        with psycopg.connect(own) as holder:
            holder.execute("SELECT * FROM d.t FOR UPDATE")
            with pytest.raises(TargetBusyError, match="lock timeout"):
                landing.write("t", ["id", "v"], rows(1))
        landing.write("t", ["id", "v"], rows(1))


class TestConnecting:
    def failing(self, uri: str, kind: type[TargetError]) -> TargetError:
        with closing(open_target(uri, ValueRules())) as target, pytest.raises(kind) as caught:
            target.connect()
        return caught.value

    def test_what_will_not_mend(self, postgres_server: PostgresServer) -> None:
        place = f"127.0.0.1:{postgres_server.port}"
        for uri in (postgres_server.uri_of("postgres", password="se-cret"), postgres_server.uri_of("nowhere")):
            error = self.failing(uri, TargetError)
            assert not isinstance(error, TargetUnreachableError)
            assert place in error.where
            assert "se-cret" not in f"{error} {error!r}"

    def test_nobody_there(self) -> None:
        error = self.failing("postgresql://u:se-cret@127.0.0.1:1/d", TargetUnreachableError)
        assert "127.0.0.1:1" in str(error)
        assert "se-cret" not in f"{error} {error!r}"


class TestChecking:
    def check(self, uri: str) -> list[str]:
        with closing(open_target(uri, ValueRules())) as target:
            return target.check()

    def test_an_owner_is_fine_and_nothing_is_made(self, own: str) -> None:
        assert "PostgreSQL" in self.check(own)[0] or "postgresql" in self.check(own)[0]
        with closing(PostgresCells(own)) as cells:
            assert cells.query("SELECT to_regnamespace('ticdc_reconciler') IS NULL AS gone") == [{"gone": True}]

    def test_rights_are_missed_by_name(self, own: str) -> None:
        with pytest.raises(TargetError, match="may not create schemas"):
            self.check(plain_user(own))
        enough = "GRANT CREATE ON DATABASE {database} TO {user}"
        self.check(plain_user(own, enough))
        with psycopg.connect(own) as connection:
            connection.execute("CREATE SCHEMA d; CREATE TABLE d.t (id INT)")
        with pytest.raises(TargetError, match=r"may not read and write table d\.t"):
            self.check(plain_user(own, enough, "GRANT USAGE ON SCHEMA d TO {user}", "GRANT SELECT ON d.t TO {user}"))

    @pytest.mark.parametrize(
        ("made", "told"),
        [
            ("CREATE TABLE d.c (id INT REFERENCES d.p ON DELETE CASCADE)", "foreign key"),
            (TRIGGER, "trigger 'tr'"),
        ],
    )
    def test_what_would_act_on_rows(self, own: str, made: str, told: str) -> None:
        uri = plain_user(own, "GRANT CREATE ON DATABASE {database} TO {user}")
        with psycopg.connect(uri) as connection:
            connection.execute(f"CREATE SCHEMA d; CREATE TABLE d.p (id INT PRIMARY KEY); {made}".encode())
        assert "off in our sessions" in self.check(own)[0]
        with pytest.raises(TargetError, match=told):
            self.check(uri)
        with closing(open_target(uri, ValueRules())) as target, pytest.raises(TargetError, match=told):
            target.connect()

    def test_an_encoding_that_holds_not_all(self, postgres_server: PostgresServer) -> None:
        name = f"latin_{uuid4().hex[:10]}"
        with psycopg.connect(postgres_server.uri, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0".encode())
        with pytest.raises(TargetError, match="LATIN1"):
            self.check(postgres_server.uri_of(name))


class TestNames:
    LONGEST = "名" * 21  # 63 bytes

    def test_any_name_up_to_63_bytes(self, own: str) -> None:
        odd = 'a "b" %s %% `c` $1 {d} Mixed; --'
        with closing(PostgresCells(own)) as cells, closing(open_target(own, ValueRules())) as target:
            landing = Landing(target, cells, odd)
            for name in (odd, self.LONGEST, "select", "x" * 63):
                table = name.replace("`", "``")
                landing.ddl(
                    f"CREATE TABLE `{table}` (`id` INT,`{table}` VARCHAR(9),PRIMARY KEY(`id`),KEY `{table}`(`{table}`))"
                )
                for count in (3, BULK_ROWS + 1):
                    landing.write(name, ["id", name], rows(count))
                    assert values(landing, name, name) == ["x"] * count
                landing.put(Half.DELETE, name, ["id"], [[str(i)] for i in range(BULK_ROWS)])
                assert values(landing, name, name) == ["x"]

    @pytest.mark.parametrize(
        "sql",
        [
            f"CREATE TABLE `{LONGEST}x` (`id` INT PRIMARY KEY)",
            f"CREATE TABLE `t` (`{LONGEST}x` INT PRIMARY KEY)",
            f"CREATE DATABASE `{LONGEST}x`",
        ],
    )
    def test_longer_ones_are_refused(self, landing: Landing, sql: str) -> None:
        with pytest.raises(TargetError, match="64 bytes") as caught:
            landing.ddl(sql)
        assert "filter" in caught.value.hint

    def test_index_names_of_any_length(self, landing: Landing) -> None:
        landing.ddl(
            f"CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,KEY `{self.LONGEST}1`(`v`),KEY `{self.LONGEST}2`(`v`))"
        )
        landing.ddl(f"ALTER TABLE `t` DROP INDEX `{self.LONGEST}1`")
        landing.ddl(f"ALTER TABLE `t` RENAME INDEX `{self.LONGEST}2` TO `short`")
        assert len(indexes(landing, "t")) == 2

    @pytest.mark.parametrize("name", ["public", "ticdc_reconciler", "pg_mine"])
    def test_schemas_that_are_not_ours_to_take(self, landing: Landing, name: str) -> None:
        with pytest.raises(TargetError, match="keeps the schema"):
            landing.ddl(f"CREATE DATABASE `{name}`")


def indexes(landing: Landing, table: str) -> list[str]:
    look = "SELECT indexdef FROM pg_indexes WHERE schemaname = %s AND tablename = %s"
    found = landing.cells.query(look, (landing.database, table))  # type: ignore[attr-defined]
    return sorted(row["indexdef"].partition(" USING ")[2] for row in found)


class TestWriting:
    @pytest.mark.parametrize("count", [3, BULK_ROWS + 10])
    def test_rows_are_replaced_and_deleted(self, landing: Landing, count: int) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT,`k` VARCHAR(9),`v` TEXT,PRIMARY KEY(`k`, `id`))")
        keyed: Rows = [[str(i), "k", "old"] for i in range(count)]
        landing.write("t", ["id", "k", "v"], keyed)
        landing.write("t", ["id", "k", "v"], [[i, k, "new"] for i, k, _ in keyed[1:]])
        assert values(landing) == ["old", *["new"] * (count - 1)]
        landing.put(Half.DELETE, "t", ["k", "id"], [["k", i] for i, *_ in keyed[:-1]])
        assert len(values(landing)) == 1

    @pytest.mark.parametrize("count", [3, BULK_ROWS + 10])
    def test_columns_of_the_targets_own_keep_their_values(self, landing: Landing, count: int) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        landing.write("t", ["id", "v"], rows(count, "old"))
        run = landing.cells.query  # type: ignore[attr-defined]
        run("ALTER TABLE d.t ADD COLUMN mine TEXT DEFAULT 'given'")
        run("UPDATE d.t SET mine = 'kept'")
        landing.target.forget_catalog()
        landing.write("t", ["id", "v"], rows(count + 1, "new"))
        assert values(landing) == ["new"] * (count + 1)
        assert values(landing, "mine") == [*["kept"] * count, "given"]

    def test_nothing_of_ours_stays(self, landing: Landing) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        landing.write("t", ["id", "v"], rows(BULK_ROWS + 1))
        found = landing.cells.query(  # type: ignore[attr-defined]
            "SELECT n.nspname || '.' || c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relkind <> 'i' AND (n.nspname IN ('d', 'public') OR c.relpersistence = 't')"
        )
        assert found == [{"name": "d.t"}]

    @pytest.mark.parametrize("count", [3, BULK_ROWS + 10])
    def test_one_bad_row_is_found_and_nothing_is_written(self, landing: Landing, count: int) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` SMALLINT)")
        with pytest.raises(RowRefusedError) as caught:
            landing.write("t", ["id", "v"], [*rows(count - 1, "1"), ["99999", "40000"]])
        assert "column v" in caught.value.fact
        assert values(landing) == []

    def test_a_table_in_public_is_none_of_ours(self, landing: Landing) -> None:
        landing.cells.query("CREATE TABLE public.t (id INT PRIMARY KEY)")  # type: ignore[attr-defined]
        landing.target.forget_catalog()
        assert TableName("public", "t") not in landing.target.catalog().tables


class TestDdl:
    def test_a_table_with_all_that_can_be_expressed(self, landing: Landing) -> None:
        landing.ddl(
            "CREATE TABLE `t` (`id` BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,`a` INT NOT NULL DEFAULT 7 COMMENT"
            " 'it''s',`b` VARCHAR(9) DEFAULT _UTF8MB4'x',`d` DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3),"
            "`j` TEXT,`z` DATE DEFAULT _UTF8MB4'0000-00-00',`g` INT GENERATED ALWAYS AS(`a`+1) VIRTUAL,"
            "UNIQUE `ua`(`a`, `b`),KEY `kj`(`j`(10)),KEY `kb`(`b` DESC),KEY `kg`(`g`),FULLTEXT `f`(`j`))"
            " COMMENT = 'a table'"
        )
        query = landing.cells.query  # type: ignore[attr-defined]
        columns = query(
            "SELECT column_name, is_nullable, column_default FROM information_schema.columns WHERE table_schema = 'd'"
            " ORDER BY ordinal_position"
        )
        assert [tuple(row.values()) for row in columns] == [
            ("id", "NO", None),
            ("a", "NO", "7"),
            ("b", "YES", "'x'::character varying(9)"),
            ("d", "YES", "LOCALTIMESTAMP(3)"),
            ("j", "YES", None),
            ("z", "YES", None),
        ]
        assert indexes(landing, "t") == [
            'btree ("left"(j, 10))', "btree (a, b)", "btree (b DESC)", "btree (id)",
        ]  # fmt: skip
        assert query("SELECT col_description('d.t'::regclass, 2) AS c, obj_description('d.t'::regclass) AS t") == [
            {"c": "it's", "t": "a table"}
        ]
        noted = landing.target.ddl_log("d", 1)[0].executed
        assert "left out: virtual column 'g'" in noted
        assert "left out: index 'kg'" in noted
        schema = landing.target.catalog().tables[TableName("d", "t")]
        assert schema.handle_key == ("id",)
        assert schema.deletes_first(("id",))

    def test_all_of_a_statement_or_nothing(self, landing: Landing) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        with pytest.raises(TargetError):
            landing.ddl("ALTER TABLE `t` ADD COLUMN `w` INT, ADD COLUMN `v` INT")
        assert landing.cells.tables(["d"])["d.t"][0] == ["id", "v"]
        assert len(landing.target.ddl_log("d", 10)) == 2

    @pytest.mark.parametrize(
        "sql",
        [
            "ALTER TABLE `t` TRUNCATE PARTITION `p`",
            "ALTER TABLE `t` EXCHANGE PARTITION `p` WITH TABLE `u`",
            "ALTER TABLE `t` MODIFY COLUMN `v` GEOMETRY",
            "ALTER TABLE `t` MODIFY COLUMN `f` VARCHAR(9)",
            "ALTER TABLE `t` ADD COLUMN `w` DATETIME DEFAULT CURRENT_TIMESTAMP()",
            "ALTER TABLE `t` ADD COLUMN `w` DATE NOT NULL",
            "ALTER TABLE `t` DISCARD TABLESPACE",
        ],
    )
    def test_what_can_not_be_done_exactly_is_refused(self, landing: Landing, sql: str) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT,`f` DOUBLE)")
        landing.write("t", ["id", "v", "f"], [["1", "x", "1e22"]])
        with pytest.raises(TargetError):
            landing.ddl(sql)
        assert landing.cells.tables(["d"])["d.t"][0] == ["id", "v", "f"]

    def test_an_empty_table_takes_any_change(self, landing: Landing) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`f` DOUBLE)")
        landing.ddl("ALTER TABLE `t` MODIFY COLUMN `f` VARCHAR(9), ADD COLUMN `w` DATETIME DEFAULT CURRENT_TIMESTAMP()")
        landing.ddl("ALTER TABLE `t` ADD COLUMN `d` DATE NOT NULL")
        landing.write("t", ["id", "f", "w", "d"], [["1", "x", "2026-01-02 03:04:05", "2026-01-02"]])

    def test_invalid_dates_as_null(self, own: str) -> None:
        with (
            closing(PostgresCells(own)) as cells,
            closing(open_target(own, ValueRules(invalid_dates="null"))) as target,
        ):
            landing = Landing(target, cells, "d")
            landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` DATE NOT NULL)")
            landing.write("t", ["id", "v"], [["1", "0000-00-00"], ["2", "2026-01-02"]])
            landing.ddl("ALTER TABLE `t` ADD COLUMN `w` DATETIME NOT NULL")
            assert values(landing) == [None, *values(landing)[1:]]
            assert values(landing, "w") == [None, None]

    def test_what_others_made_of_a_table_stays(self, landing: Landing) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY)")
        landing.cells.query("CREATE VIEW public.mine AS SELECT * FROM d.t")  # type: ignore[attr-defined]
        with pytest.raises(TargetError, match="mine"):
            landing.ddl("DROP DATABASE `d`")
        assert landing.cells.tables(["d"])["d.t"][0] == ["id"]

    def test_a_database_with_tables_is_dropped(self, landing: Landing) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY)")
        landing.ddl("DROP DATABASE `d`")
        assert landing.cells.databases() == set()  # type: ignore[attr-defined]

    def test_an_index_may_be_named_as_a_table(self, landing: Landing) -> None:
        landing.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,KEY `u`(`v`))")
        landing.ddl("CREATE TABLE `u` (`id` INT PRIMARY KEY,`v` INT,KEY `u`(`v`))")
        landing.ddl("RENAME TABLE `t` TO `x`")
        landing.ddl("RENAME TABLE `u` TO `t`")
        landing.ddl("ALTER TABLE `x` DROP INDEX `u`")
        assert [len(indexes(landing, name)) for name in ("t", "x")] == [2, 1]


def test_tables_made_by_others_are_written_by_their_own_types(landing: Landing) -> None:
    """Loaded by another tool: its enum types, booleans, identity columns and partitions."""
    run: Callable[[str], object] = landing.cells.query  # type: ignore[attr-defined]
    run("CREATE TYPE d.mood AS ENUM ('sad', 'it''s ok')")
    run(
        "CREATE TABLE d.t (id INT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, m d.mood, b BOOLEAN, u UUID, c CHAR(5),"
        " x JSON) PARTITION BY RANGE (id)"
    )
    run("CREATE TABLE d.t_1 PARTITION OF d.t FOR VALUES FROM (0) TO (100000)")
    landing.target.forget_catalog()
    assert set(landing.target.catalog().tables) == {TableName("d", "t")}
    uuid = "0d6f6c9e-27a8-4a6c-b8a5-3f0d9e7b1c11"
    for count in (2, BULK_ROWS + 1):
        landing.write(
            "t", ["id", "m", "b", "u", "c", "x"], [[str(i), "2", "1", uuid, "ab", "{}"] for i in range(count)]
        )
    row = landing.read("t")[0]
    assert (row["m"], row["b"], str(row["u"]), row["c"]) == ("it's ok", True, uuid, "ab   ")


def test_a_target_is_made_anew_in_a_task(landing: Landing) -> None:
    made: Target = landing.target.opener()()
    with closing(made):
        made.connect()
        assert made.stored("d") == landing.target.stored("d")
