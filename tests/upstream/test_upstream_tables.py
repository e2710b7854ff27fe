"""The simulated database: keys, handles, failing statements, rollback."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumer.demo.fake_ticdc.changefeed import row_events
from consumer.demo.fake_ticdc.database import (
    Commit,
    ConstraintError,
    Database,
    DuplicateKeyError,
    KeyKind,
    Row,
    RowNotFoundError,
    Table,
    Transaction,
)
from consumer.demo.fake_ticdc.ddl import AddColumnDdl, CreateTable, DropColumnDdl, RenameTable, TruncateTable
from consumer.demo.fake_ticdc.oracle import snapshot_at

KINDS: list[KeyKind] = ["clustered", "nonclustered", "unique_only"]
COLUMNS = (("id", "int", False), ("u", "int", True), ("v", "varchar(9)", True))


def table(kind: KeyKind) -> Table:
    unique = (("ku", ("u",)), *([("kid", ("id",))] if kind == "unique_only" else []))
    return Table("d", "t", COLUMNS, ("id",), kind, unique)


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest) -> Database:
    database = Database()
    database.execute(CreateTable(table(request.param)))
    with database.transaction() as transaction:
        transaction.insert("d.t", {"id": "1", "u": "10", "v": "one"})
        transaction.insert("d.t", {"id": "2", "u": "20"})
        transaction.insert("d.t", {"id": "3"})
    return database


def kinds(commit: object, *, raw: bool) -> list[str]:
    assert isinstance(commit, Commit)
    events = row_events(commit, raw=raw).get("d.t", [])
    return ["DUI"[event.kind] for event in events]


def test_a_taken_key_is_refused_and_the_transaction_goes_on(database: Database) -> None:
    before = database.snapshot()
    with database.transaction() as transaction:
        with pytest.raises(DuplicateKeyError):
            transaction.insert("d.t", {"id": "1"})
        with pytest.raises(DuplicateKeyError):
            transaction.insert("d.t", {"id": "9", "u": "10"})
        with pytest.raises(DuplicateKeyError):
            transaction.update("d.t", ("1",), {"id": "2"})
        with pytest.raises(DuplicateKeyError):
            transaction.update("d.t", ("3",), {"u": "20"})
        assert not transaction.touched
        transaction.insert("d.t", {"id": "9", "u": None})
    assert database.snapshot() == {"d.t": {**before["d.t"], ("9",): {"id": "9", "u": None, "v": None}}}


def test_a_failing_transaction_leaves_no_trace(database: Database) -> None:
    before, commits = database.snapshot(), len(database.log)

    def fail() -> None:
        with database.transaction() as transaction:
            transaction.delete("d.t", ("1",))
            transaction.update("d.t", ("2",), {"id": "1", "u": "10"})
            transaction.insert("d.t", {"id": "2", "u": "20"})
            transaction.delete("d.t", ("1",))
            transaction.delete("d.t", ("77",))

    with pytest.raises(RowNotFoundError):
        fail()
    assert database.snapshot() == before
    assert len(database.log) == commits
    with database.transaction() as transaction, pytest.raises(DuplicateKeyError):
        transaction.insert("d.t", {"id": "5", "u": "10"})


def test_null_and_unknown_columns_are_refused(database: Database) -> None:
    with database.transaction() as transaction:
        for row in ({"u": "1"}, {"id": None}, {"id": "7", "w": "1"}):
            with pytest.raises(ConstraintError):
                transaction.insert("d.t", row)


def test_a_changed_key_is_two_events_if_the_key_is_the_handle(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.update("d.t", ("1",), {"id": "5"})
    clustered = database.state.tables["d.t"].key_kind == "clustered"
    assert kinds(database.log[-1], raw=True) == (["D", "I"] if clustered else ["U"])
    assert kinds(database.log[-1], raw=False) == ["D", "I"]


def test_a_row_inserted_again_is_an_update_if_the_key_is_the_handle(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.delete("d.t", ("1",))
        transaction.insert("d.t", {"id": "1", "u": "10", "v": "again"})
    clustered = database.state.tables["d.t"].key_kind == "clustered"
    assert kinds(database.log[-1], raw=False) == (["U"] if clustered else ["D", "I"])


def test_a_moved_unique_value_is_split_though_the_key_stays(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.update("d.t", ("1",), {"u": None})
        transaction.update("d.t", ("3",), {"u": "10"})
    assert kinds(database.log[-1], raw=False) == ["D", "D", "I", "I"]
    assert kinds(database.log[-1], raw=True) == ["U", "U"]


def test_there_and_back_is_an_update_and_in_and_out_is_nothing(database: Database) -> None:
    entries = len(database.log)
    with database.transaction() as transaction:
        transaction.insert("d.t", {"id": "8"})
        transaction.delete("d.t", ("8",))
    assert len(database.log) == entries
    with database.transaction() as transaction:
        transaction.update("d.t", ("1",), {"v": "else"})
        transaction.update("d.t", ("1",), {"v": "one"})
        transaction.update("d.t", ("2",), {"v": None})
    commit = database.log[-1]
    assert isinstance(commit, Commit)
    assert [(change.old, change.new) for change in commit.changes] == [({"id": "1", "u": "10", "v": "one"},) * 2]


def test_ddl_changes_rows_without_events(database: Database) -> None:
    database.execute(AddColumnDdl("d.t", ("n", "int", False), "5"))
    database.execute(DropColumnDdl("d.t", "v"))
    database.execute(RenameTable("d.t", "e.s"))
    assert database.snapshot()["e.s"]["1",] == {"id": "1", "u": "10", "n": "5"}
    with database.transaction() as transaction, pytest.raises(DuplicateKeyError):
        transaction.insert("e.s", {"id": "4", "u": "10", "n": "1"})
    database.execute(TruncateTable("e.s"))
    assert database.snapshot() == {"e.s": {}}


def test_ddls_are_printed_as_tidb_prints_them() -> None:
    assert AddColumnDdl("d.t", ("n", "int", False), "5").sql == "ALTER TABLE `t` ADD COLUMN `n` INT NOT NULL DEFAULT 5"
    quoted = AddColumnDdl("d.t", ("s", "varchar(10)", True), "it's").sql
    assert quoted == "ALTER TABLE `t` ADD COLUMN `s` VARCHAR(10) DEFAULT _UTF8MB4'it''s'"
    assert RenameTable("d.t", "e.s").sql == "RENAME TABLE `d`.`t` TO `e`.`s`"


def test_a_table_without_a_usable_key_is_refused() -> None:
    with pytest.raises(ValueError, match="unique keys"):
        Table("d", "t", COLUMNS, ("id",), "unique_only", (("ku", ("u",)),))
    with pytest.raises(ValueError, match="nowhere"):
        Table("d", "t", COLUMNS, ("nowhere",))


OPERATIONS = st.tuples(
    st.sampled_from(["insert", "update", "delete"]),
    st.integers(1, 4).map(str),
    st.integers(1, 4).map(str),
    st.one_of(st.none(), st.integers(1, 3).map(str)),
)


def refused(transaction: Transaction, verb: str, old: str, new: str, unique: str | None) -> bool:
    """Run the statement; tell whether the database refused it."""
    try:
        match verb:
            case "insert":
                transaction.insert("d.t", {"id": new, "u": unique})
            case "update":
                transaction.update("d.t", (old,), {"id": new, "u": unique})
            case _:
                transaction.delete("d.t", (old,))
    except (DuplicateKeyError, RowNotFoundError):
        return True
    return False


def expected(rows: list[Row], verb: str, old: str, new: str, unique: str | None) -> list[Row] | None:
    """Do the same to a plain list of rows; None if a key is taken or the row is not there."""
    rest = [row for row in rows if verb == "insert" or row["id"] != old]
    if verb != "insert" and len(rest) == len(rows):
        return None
    if verb == "delete":
        return rest
    if any(row["id"] == new or (unique is not None and row["u"] == unique) for row in rest):
        return None
    return [*rest, {"id": new, "u": unique, "v": None}]


@settings(max_examples=150)
@given(kind=st.sampled_from(KINDS), transactions=st.lists(st.lists(OPERATIONS, max_size=6), max_size=6))
def test_any_statements_agree_with_a_plain_list_of_rows(
    kind: KeyKind, transactions: list[list[tuple[str, str, str, str | None]]]
) -> None:
    database = Database()
    rows: list[Row] = []
    database.execute(CreateTable(table(kind)))
    for statements in transactions:
        with database.transaction() as transaction:
            for statement in statements:
                wanted = expected(rows, *statement)
                assert refused(transaction, *statement) == (wanted is None)
                rows = rows if wanted is None else wanted
        assert database.snapshot()["d.t"] == {(row["id"],): row for row in rows}
        assert snapshot_at(database.log, 2**64) == database.snapshot()
