"""`docs/ddl.md` tells the truth: functions, types, settings and commands that it names are those of the code."""

import re

import pytest

from sinks.ddl.rows.partition_condition import KEYED
from sinks.ddl.ticdc_allow_list import Event, clauses_of
from sinks.postgres.ddl.partition_condition import PostgresSpeller
from sinks.sqlite.ddl.partition_condition import SqliteSpeller
from tests.docs.test_readme import README, ROOT, check_command_line, words_of

TEXT = (ROOT / "docs" / "ddl.md").read_text()


def row(start: str) -> str:
    return next(line for line in TEXT.splitlines() if line.startswith(f"| {start}"))


@pytest.mark.parametrize("text", re.findall(r"`(reconciler\s[^`]+)`", TEXT))
def test_its_commands_exist(text: str) -> None:
    check_command_line(words_of(text))


def test_functions_of_partitions() -> None:
    told = set(re.findall(r"`([A-Z_]+)`", row("RANGE, LIST over")))
    assert set(SqliteSpeller.functions) == set(PostgresSpeller.functions) == told
    assert {"+", "-", "*", "DIV", "MOD", "%"} == set(SqliteSpeller.operators) == set(PostgresSpeller.operators)


def test_types_of_key_columns() -> None:
    told = row("KEY |").upper()
    names = {"decimal", "date", "datetime", "enum", "varbinary"}
    assert names <= KEYED
    assert all(name.upper() in told for name in names)


@pytest.mark.parametrize("name", ["target.volatile-defaults", "target.invalid-dates", "source.time-zone"])
def test_its_settings_exist(name: str) -> None:
    assert f"`{name}" in TEXT
    assert f"| `{name}` |" in (ROOT / "docs" / "configuration.md").read_text()


STATEMENTS = {
    Event.TABLE_COMMENT: "`COMMENT`", Event.INDEX_VISIBILITY: "`ALTER INDEX VISIBLE`", Event.TTL: "`TTL`",
    Event.REBASE_AUTO_ID: "`AUTO_INCREMENT =`", Event.RECOVER_TABLE: "`RECOVER TABLE`",
    Event.EXCHANGE_PARTITION: "`EXCHANGE PARTITION`", Event.DROP_PARTITION: "`TRUNCATE PARTITION`, `DROP PARTITION`",
    Event.CREATE_VIEW: "`CREATE VIEW`", Event.MODIFY_COLUMN: "`MODIFY COLUMN`", Event.SET_DEFAULT: "`ALTER COLUMN SET",
    Event.ADD_PRIMARY_KEY: "`ADD PRIMARY KEY`", Event.TABLE_CHARSET: "`CHARACTER SET`",
}  # fmt: skip


def test_every_kind_has_a_row() -> None:
    assert all(row(start).count("|") == 6 for start in STATEMENTS.values())
    assert clauses_of("ALTER TABLE `t` REMOVE TTL").events
    assert "docs/ddl.md" in README
