"""The sections of a config that are about single tables: which of them count, and where they lie in the target."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from consumer.config import validators as checks

Condition = Annotated[str, AfterValidator(checks.condition)]


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class Section(BaseModel):
    """Keys in TiCDC's spelling; unknown ones are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=_kebab, strict=True, use_attribute_docstrings=True
    )


class EventFilterSection(Section):
    """Which events of some tables to leave out."""

    matcher: Annotated[list[str], Field(min_length=1), AfterValidator(checks.matcher)]
    """Rules for the tables that the filter applies to. It applies to a statement about a database if the rules
    include any table name of that database."""
    ignore_event: Annotated[list[str], AfterValidator(checks.events)] = []
    """Kinds of events by TiCDC's names: `all dml`, `all ddl`, `insert`, `create table`, `add column`, ..."""
    ignore_sql: Annotated[list[str], AfterValidator(checks.sql)] = []
    """DDLs whose text contains a match of one of these expressions, ignoring case."""
    ignore_insert_value_expr: Condition = ""
    """INSERTs for which this SQL condition is true."""
    ignore_update_new_value_expr: Condition = ""
    """UPDATEs whose new row satisfies this SQL condition."""
    ignore_update_old_value_expr: Condition = ""
    """UPDATEs whose old row satisfies this SQL condition."""
    ignore_delete_value_expr: Condition = ""
    """DELETEs for which this SQL condition is true."""
    ignore_update_only_columns: list[Annotated[str, Field(min_length=1)]] = []
    """UPDATEs that change nothing but these columns; never one that changes a primary or unique key. See
    `docs/filters.md`."""


class FilterSection(Section):
    """Which tables and events are replicated, written as in a TiCDC changefeed; see `docs/filters.md`."""

    rules: Annotated[list[str], AfterValidator(checks.rules)] = ["*.*"]
    """TiCDC's table filter: `shop.*`, `!shop.tmp_*`, `/regex/.*`, `@FILE`; the last match decides."""
    case_sensitive: bool = False
    """Whether rules and matchers are case-sensitive."""
    ignore_txn_start_ts: Annotated[list[int], AfterValidator(checks.no_start_ts)] = []
    """Must be empty: messages do not contain the start TSO. Set it upstream."""
    event_filters: list[EventFilterSection] = []
    """Each `[[filter.event-filters]]` leaves out some events of some tables."""
    force_replicate: bool = False
    """Replicate tables without a valid key, which a changefeed with the same setting sends; see
    `docs/keyless-tables.md`."""


class DispatcherSection(Section):
    """Where some tables lie in the target, as TiCDC's `sink.dispatchers` have it."""

    matcher: Annotated[list[str], Field(min_length=1), AfterValidator(checks.matcher)]
    """Rules for the tables that it is about, by their names upstream. The first one that matches a table decides."""
    target_schema: Annotated[str, AfterValidator(checks.target_name)] = ""
    """The schema in the target: text in which `{schema}` and `{table}` stand for the upstream's names. `""`: as
    upstream."""
    target_table: Annotated[str, AfterValidator(checks.target_name)] = ""
    """The table's name in the target, likewise."""
    topic: str = ""
    """TiCDC's alone: no effect here."""
    dispatcher: str = ""
    """TiCDC's alone: no effect here."""
    partition: str = ""
    """TiCDC's alone: no effect here."""
    index: str = ""
    """TiCDC's alone: no effect here."""
    columns: list[str] = []
    """TiCDC's alone: no effect here."""


class SinkSection(Section):
    """Where tables lie in the target, if not under their names upstream; see `docs/routes.md`."""

    dispatchers: list[DispatcherSection] = []
    """Each `[[sink.dispatchers]]` gives some tables another schema or name. The blocks of a TiCDC changefeed can be
    pasted; their other keys have no effect here."""
