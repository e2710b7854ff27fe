"""What is PostgreSQL's own: names, its ways of writing rows, transactional DDL."""

from collections.abc import Callable
from contextlib import closing

import pytest

from ordering.errors import TargetError
from ordering.events import RowOp, TableName
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.writer import BULK_ROWS
from sinks.registry import open_target
from sinks.rows.bisect_refused import RowRefusedError
from sinks.rows.spool import Spool
from sinks.rows.values import ValueRules
from sinks.target import Target
from sinks.uri import parse_target_uri
from tests.service.landing import Landing
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
Rows = list[list[str | None]]
TRIGGER = """CREATE FUNCTION d.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER tr AFTER INSERT ON d.p FOR EACH ROW EXECUTE FUNCTION d.f()"""


def rows(count: int, value: str = "x") -> Rows:
    return [[str(i), value] for i in range(count)]


def values(fresh: Landing, column: str = "v", table: str = "t") -> list[object]:
    return [row[column] for row in fresh.read(table)]


@pytest.mark.parametrize(
    "reset",
    [
        "DISCARD ALL",
        "RESET ALL",
        "SET ticdc_reconciler.session = 'of another one'",
        "SET session_replication_role = 'origin'",
        "SET row_security = on",
        "SET timezone = 'Asia/Tokyo'",
        "SET extra_float_digits = 0",
    ],
)
def test_a_transaction_in_another_session_than_ours_writes_nothing(fresh: Landing, reset: str) -> None:
    """As behind a pooler that pools transactions: its session lacks some of our settings, so that triggers fire.

    It may have our mark: what is set up in several messages may come to several sessions.
    """
    fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` VARCHAR(9))")
    fresh.write("t", ["id", "v"], rows(2))
    fresh.target.session.db.run(reset)
    with pytest.raises(TargetError, match="another session of the server"):
        fresh.write("t", ["id", "v"], rows(2, "y"))
    assert values(fresh) == ["x"] * 2
    fresh.target.close()
    fresh.target.connect()
    fresh.write("t", ["id", "v"], rows(2, "y"))
    assert values(fresh) == ["y"] * 2


def test_no_variable_of_the_environment_leads_to_another_server(
    own_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server listens at 127.0.0.1 alone."""
    monkeypatch.setenv("PGHOSTADDR", "127.0.0.9")
    with closing(PostgresConnection(parse_target_uri(own_database))) as db:
        assert db.value("SELECT 1") == 1


@pytest.mark.parametrize("setting", ["quote_all_identifiers = on", "array_nulls = off", "transform_null_equals = on"])
def test_a_database_that_is_set_otherwise_has_the_same_tables(fresh: Landing, setting: str) -> None:
    """With `quote_all_identifiers` a date is a "date", which no row of upstream fitted any more."""
    fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY, `d` DATE, `s` TIME, `e` ENUM('a','b'), UNIQUE KEY `u` (`d`))")
    before = fresh.target.session.catalog().tables
    db = fresh.target.session.db
    db.run(f"DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET {setting}', current_database()); END$$")
    fresh.target.close()
    fresh.target.connect()
    assert fresh.target.session.catalog().tables == before


class TestNames:
    LONGEST = "名" * 21  # 63 bytes

    def test_any_name_up_to_63_bytes(self, own_database: str) -> None:
        odd = 'a "b" %s %% `c` $1 {d} Mixed; --'
        with closing(PostgresCells(own_database)) as cells, closing(open_target(own_database, ValueRules())) as target:
            fresh = Landing(target, cells, odd)
            for name in (odd, self.LONGEST, "select", "x" * 63):
                table = name.replace("`", "``")
                fresh.ddl(
                    f"CREATE TABLE `{table}` (`id` INT,`{table}` VARCHAR(9),PRIMARY KEY(`id`),KEY `{table}`(`{table}`))"
                )
                for count in (3, BULK_ROWS + 1):
                    fresh.write(name, ["id", name], rows(count))
                    assert values(fresh, name, name) == ["x"] * count
                fresh.put(RowOp.DELETE, name, ["id"], [[str(i)] for i in range(BULK_ROWS)])
                assert values(fresh, name, name) == ["x"]

    @pytest.mark.parametrize(
        "sql",
        [
            f"CREATE TABLE `{LONGEST}x` (`id` INT PRIMARY KEY)",
            f"CREATE TABLE `t` (`{LONGEST}x` INT PRIMARY KEY)",
            f"CREATE DATABASE `{LONGEST}x`",
        ],
    )
    def test_longer_ones_are_refused(self, fresh: Landing, sql: str) -> None:
        with pytest.raises(TargetError, match="64 bytes") as caught:
            fresh.ddl(sql)
        assert "filter" in caught.value.hint

    def test_index_names_of_any_length(self, fresh: Landing) -> None:
        fresh.ddl(
            f"CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,KEY `{self.LONGEST}1`(`v`),KEY `{self.LONGEST}2`(`v`))"
        )
        fresh.ddl(f"ALTER TABLE `t` DROP INDEX `{self.LONGEST}1`")
        fresh.ddl(f"ALTER TABLE `t` RENAME INDEX `{self.LONGEST}2` TO `short`")
        assert len(indexes(fresh, "t")) == 2

    @pytest.mark.parametrize("name", ["public", "ticdc_reconciler", "pg_mine"])
    def test_schemas_that_are_not_ours_to_take(self, fresh: Landing, name: str) -> None:
        with pytest.raises(TargetError, match="keeps the schema"):
            fresh.ddl(f"CREATE DATABASE `{name}`")


def indexes(fresh: Landing, table: str) -> list[str]:
    look = "SELECT indexdef FROM pg_indexes WHERE schemaname = %s AND tablename = %s"
    found = fresh.cells.query(look, (fresh.database, table))  # type: ignore[attr-defined]
    return sorted(row["indexdef"].partition(" USING ")[2] for row in found)


class TestWriting:
    def test_no_plan_outlives_the_table_that_it_was_made_for(self, fresh: Landing) -> None:
        """One that was made while the table was empty reads all of it for each small unit, until it is analyzed."""
        fresh.ddl("CREATE TABLE `t` (`id` BIGINT PRIMARY KEY,`v` TEXT)")
        for turn in range(20):  # psycopg prepares the sixth of alike statements, the server keeps the plan of the sixth
            fresh.write("t", ["id", "v"], [[str(20 * turn + i), "x"] for i in range(20)])
        look = "SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE statement LIKE 'DELETE%'"
        ((custom, generic),) = fresh.target.session.db.query(look)
        assert (custom, generic) == (15, 0)

    @pytest.mark.parametrize("count", [3, BULK_ROWS + 10])
    def test_rows_are_replaced_and_deleted(self, fresh: Landing, count: int) -> None:
        fresh.ddl("CREATE TABLE `t` (`id` INT,`k` VARCHAR(9),`v` TEXT,PRIMARY KEY(`k`, `id`))")
        keyed: Rows = [[str(i), "k", "old"] for i in range(count)]
        fresh.write("t", ["id", "k", "v"], keyed)
        fresh.write("t", ["id", "k", "v"], [[i, k, "new"] for i, k, _ in keyed[1:]])
        assert values(fresh) == ["old", *["new"] * (count - 1)]
        fresh.put(RowOp.DELETE, "t", ["k", "id"], [["k", i] for i, *_ in keyed[:-1]])
        assert len(values(fresh)) == 1

    @pytest.mark.parametrize("count", [3, BULK_ROWS + 10])
    def test_columns_of_the_targets_own_keep_their_values(self, fresh: Landing, count: int) -> None:
        fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        fresh.write("t", ["id", "v"], rows(count, "old"))
        run = fresh.cells.query  # type: ignore[attr-defined]
        run("ALTER TABLE d.t ADD COLUMN mine TEXT DEFAULT 'given'")
        run("UPDATE d.t SET mine = 'kept'")
        fresh.target.forget_catalog()
        fresh.write("t", ["id", "v"], rows(count + 1, "new"))
        assert values(fresh) == ["new"] * (count + 1)
        assert values(fresh, "mine") == [*["kept"] * count, "given"]

    def test_nothing_of_ours_stays(self, fresh: Landing) -> None:
        fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        fresh.write("t", ["id", "v"], rows(BULK_ROWS + 1))
        found = fresh.cells.query(  # type: ignore[attr-defined]
            "SELECT n.nspname || '.' || c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relkind <> 'i' AND (n.nspname IN ('d', 'public') OR c.relpersistence = 't')"
        )
        assert found == [{"name": "d.t"}]

    @pytest.mark.parametrize("count", [3, BULK_ROWS + 10])
    def test_one_bad_row_is_found_and_nothing_is_written(self, fresh: Landing, count: int) -> None:
        fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` SMALLINT)")
        with pytest.raises(RowRefusedError) as caught:
            fresh.write("t", ["id", "v"], [*rows(count - 1, "1"), ["99999", "40000"]])
        assert "column v" in caught.value.fact
        assert values(fresh) == []

    def test_a_small_unit_of_several_tables(self, fresh: Landing, monkeypatch: pytest.MonkeyPatch) -> None:
        """It needs no savepoint until a row is refused; then that row is found, and nothing is written."""
        points: list[object] = []
        save_point = PostgresConnection.save_point
        monkeypatch.setattr(PostgresConnection, "save_point", lambda db: points.append(db) or save_point(db))
        for table in "abc":
            fresh.ddl(f"CREATE TABLE `{table}` (`id` INT PRIMARY KEY,`v` SMALLINT)")
        before = len(points)
        with Spool() as spool:
            for table in "abc":
                spool.add(fresh.chunk(RowOp.WRITE, table, ["id", "v"], rows(2, "1")))
            fresh.apply(spool)
            assert len(points) == before
            spool.add(fresh.chunk(RowOp.WRITE, "b", ["id", "v"], [["3", "1"], ["7", "40000"], ["8", "1"]]))
            with pytest.raises(RowRefusedError) as caught:
                fresh.apply(spool)
        assert (caught.value.row.table.table, caught.value.row.payload) == ("b", b"7\t40000\n")
        assert [values(fresh, table=table) for table in "abc"] == [[1, 1]] * 3

    def test_a_table_in_public_is_none_of_ours(self, fresh: Landing) -> None:
        fresh.cells.query("CREATE TABLE public.t (id INT PRIMARY KEY)")  # type: ignore[attr-defined]
        fresh.target.forget_catalog()
        assert TableName("public", "t") not in fresh.target.catalog().tables


class TestDdl:
    def test_a_table_with_all_that_can_be_expressed(self, fresh: Landing) -> None:
        fresh.ddl(
            "CREATE TABLE `t` (`id` BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,`a` INT NOT NULL DEFAULT 7 COMMENT"
            " 'it''s',`b` VARCHAR(9) DEFAULT _UTF8MB4'x',`d` DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3),"
            "`j` TEXT,`z` DATE DEFAULT _UTF8MB4'0000-00-00',`g` INT GENERATED ALWAYS AS(`a`+1) VIRTUAL,"
            "UNIQUE `ua`(`a`, `b`),KEY `kj`(`j`(10)),KEY `kb`(`b` DESC),KEY `kg`(`g`),FULLTEXT `f`(`j`))"
            " COMMENT = 'a table'"
        )
        query = fresh.cells.query  # type: ignore[attr-defined]
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
        assert indexes(fresh, "t") == [
            'btree ("left"(j, 10))', "btree (a, b)", "btree (b DESC)", "btree (id)",
        ]  # fmt: skip
        assert query("SELECT col_description('d.t'::regclass, 2) AS c, obj_description('d.t'::regclass) AS t") == [
            {"c": "it's", "t": "a table"}
        ]
        noted = fresh.target.ddl_log.latest("d", 1)[0].executed
        assert "left out: virtual column 'g'" in noted
        assert "left out: index 'kg'" in noted
        schema = fresh.target.catalog().tables[TableName("d", "t")]
        assert schema.handle_key == ("id",)
        assert schema.deletes_first(("id",))

    def test_all_of_a_statement_or_nothing(self, fresh: Landing) -> None:
        fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")
        with pytest.raises(TargetError):
            fresh.ddl("ALTER TABLE `t` ADD COLUMN `w` INT, ADD COLUMN `v` INT")
        assert fresh.cells.tables(["d"])["d.t"][0] == ["id", "v"]
        assert [line.state for line in fresh.target.ddl_log.latest("d", 10)][1:] == ["done", "done"]

    @pytest.mark.parametrize(
        "sql",
        [
            "ALTER TABLE `t` TRUNCATE PARTITION `p`",
            "ALTER TABLE `t` EXCHANGE PARTITION `p` WITH TABLE `u`",
            "ALTER TABLE `t` MODIFY COLUMN `v` GEOMETRY",
            "ALTER TABLE `t` MODIFY COLUMN `f` SET('x')",
            "ALTER TABLE `t` ADD COLUMN `w` DATE NOT NULL",
            "ALTER TABLE `t` DISCARD TABLESPACE",
        ],
    )
    def test_what_can_not_be_done_exactly_is_refused(self, fresh: Landing, sql: str) -> None:
        fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT,`f` DOUBLE)")
        fresh.write("t", ["id", "v", "f"], [["1", "x", "1e22"]])
        with pytest.raises(TargetError):
            fresh.ddl(sql)
        assert fresh.cells.tables(["d"])["d.t"][0] == ["id", "v", "f"]

    def test_partitions_are_exchanged_whatever_makes_their_keys(self, fresh: Landing) -> None:
        fresh.ddl(
            "CREATE TABLE `p` (`id` INT PRIMARY KEY) PARTITION BY RANGE (`id`) (PARTITION `a` VALUES LESS THAN (9))"
        )
        fresh.ddl("CREATE TABLE `n` (`id` INT PRIMARY KEY)")
        for name in "pn":
            fresh.cells.query(f"ALTER TABLE d.{name} ALTER id ADD GENERATED ALWAYS AS IDENTITY")
        fresh.write("p", ["id"], [["1"], ["2"]])
        fresh.write("n", ["id"], [["7"]])
        fresh.ddl("ALTER TABLE `d`.`p` EXCHANGE PARTITION `a` WITH TABLE `d`.`n`")
        held = {name: [row["id"] for row in fresh.cells.tables(["d"])[f"d.{name}"][1]] for name in "pn"}
        assert held == {"p": [7], "n": [1, 2]}

    def test_an_empty_table_takes_any_change(self, fresh: Landing) -> None:
        fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`f` DOUBLE)")
        fresh.ddl("ALTER TABLE `t` MODIFY COLUMN `f` VARCHAR(9), ADD COLUMN `w` DATETIME DEFAULT CURRENT_TIMESTAMP()")
        fresh.ddl("ALTER TABLE `t` ADD COLUMN `d` DATE NOT NULL")
        fresh.write("t", ["id", "f", "w", "d"], [["1", "x", "2026-01-02 03:04:05", "2026-01-02"]])

    def test_invalid_dates_as_null(self, own_database: str) -> None:
        with (
            closing(PostgresCells(own_database)) as cells,
            closing(open_target(own_database, ValueRules(invalid_dates="null"))) as target,
        ):
            fresh = Landing(target, cells, "d")
            fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` DATE NOT NULL)")
            fresh.write("t", ["id", "v"], [["1", "0000-00-00"], ["2", "2026-01-02"]])
            fresh.ddl("ALTER TABLE `t` ADD COLUMN `w` DATETIME NOT NULL")
            assert values(fresh) == [None, *values(fresh)[1:]]
            assert values(fresh, "w") == [None, None]

    def test_what_others_made_of_a_table_stays(self, fresh: Landing) -> None:
        fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY)")
        fresh.cells.query("CREATE VIEW public.mine AS SELECT * FROM d.t")  # type: ignore[attr-defined]
        with pytest.raises(TargetError, match="mine"):
            fresh.ddl("DROP DATABASE `d`")
        assert fresh.cells.tables(["d"])["d.t"][0] == ["id"]

    def test_a_database_with_tables_is_dropped(self, fresh: Landing) -> None:
        fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY)")
        fresh.ddl("DROP DATABASE `d`")
        assert fresh.cells.databases() == set()  # type: ignore[attr-defined]

    def test_an_index_may_be_named_as_a_table(self, fresh: Landing) -> None:
        fresh.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,KEY `u`(`v`))")
        fresh.ddl("CREATE TABLE `u` (`id` INT PRIMARY KEY,`v` INT,KEY `u`(`v`))")
        fresh.ddl("RENAME TABLE `t` TO `x`")
        fresh.ddl("RENAME TABLE `u` TO `t`")
        fresh.ddl("ALTER TABLE `x` DROP INDEX `u`")
        assert [len(indexes(fresh, name)) for name in ("t", "x")] == [2, 1]


def test_tables_made_by_others_are_written_by_their_own_types(fresh: Landing) -> None:
    """Loaded by another tool: its enum types, booleans, identity columns and partitions."""
    run: Callable[[str], object] = fresh.cells.query  # type: ignore[attr-defined]
    run("CREATE TYPE d.mood AS ENUM ('sad', 'it''s ok')")
    run(
        "CREATE TABLE d.t (id INT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, m d.mood, b BOOLEAN, u UUID, c CHAR(5),"
        " x JSON) PARTITION BY RANGE (id)"
    )
    run("CREATE TABLE d.t_1 PARTITION OF d.t FOR VALUES FROM (0) TO (100000)")
    fresh.target.forget_catalog()
    assert set(fresh.target.catalog().tables) == {TableName("d", "t")}
    uuid = "0d6f6c9e-27a8-4a6c-b8a5-3f0d9e7b1c11"
    for count in (2, BULK_ROWS + 1):
        fresh.write("t", ["id", "m", "b", "u", "c", "x"], [[str(i), "2", "1", uuid, "ab", "{}"] for i in range(count)])
    row = fresh.read("t")[0]
    assert (row["m"], row["b"], str(row["u"]), row["c"]) == ("it's ok", True, uuid, "ab   ")


def test_a_target_is_made_anew_in_a_task(fresh: Landing) -> None:
    made: Target = fresh.target.opener()()
    with closing(made):
        made.connect()
        assert made.stored("d") == fresh.target.stored("d")


def test_a_transaction_in_which_a_statement_failed_is_not_taken_for_committed(own_database: str) -> None:
    """PostgreSQL answers such a COMMIT with ROLLBACK, and with no error."""
    with closing(PostgresConnection(parse_target_uri(own_database))) as connection:
        connection.begin()
        with pytest.raises(TargetError, match="division by zero"):
            connection.query("SELECT 1 / 0")
        with pytest.raises(TargetError, match="did not commit"):
            connection.commit()
        connection.begin()
        connection.commit()
