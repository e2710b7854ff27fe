"""The sections of a config that are about single tables: which of them are replicated, and under which names."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from consumer.config import validators as checks
from consumer.filters.columns import HASH_LENGTH
from ordering.events import folded

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
    changed_event_filters: Literal["error", "accept"] = "error"
    """What to do if the event filters no longer leave out everything that they left out so far: end with an error, or
    apply the new ones to all events above the checkpoint. Set it for one run; see `docs/filters.md`."""
    force_replicate: bool = False
    """Replicate tables without a valid key, which a changefeed with the same setting sends; see
    `docs/keyless-tables.md`."""
    promoted_keys: Annotated[list[str], AfterValidator(checks.matcher)] = []
    """Rules for tables that have no primary key upstream, and whose primary key in the target was created by hand over
    columns that are unique and NOT NULL upstream; see `docs/keyless-tables.md`."""


class ExtractTableSection(Section):
    """A column that holds, for each row of a merged table, what an expression finds in its table's name upstream."""

    table_regexp: Annotated[str, AfterValidator(checks.extraction)] = ""
    """What the expression (Go's, RE2) finds in the table's name, in lower case: its groups, one after the other."""
    target_column: Annotated[str, AfterValidator(checks.origin_text)] = ""
    """The column of the target that holds it; `""`: none. No table upstream may have a column of this name."""


class ExtractSchemaSection(Section):
    """A column that holds what an expression finds in the name of a row's schema upstream."""

    schema_regexp: Annotated[str, AfterValidator(checks.extraction)] = ""
    """The same for the schema's name."""
    target_column: Annotated[str, AfterValidator(checks.origin_text)] = ""
    """The column of the target that holds it; `""`: none."""


class ExtractSourceSection(Section):
    """A column that holds the same in every row of this changefeed: several may fill one table."""

    source: Annotated[str, AfterValidator(checks.origin_text)] = ""
    """What the column holds, at most 64 characters."""
    target_column: Annotated[str, AfterValidator(checks.origin_text)] = ""
    """The column of the target that holds it; `""`: none."""


class DispatcherSection(Section):
    """The names of some tables in the target, written as TiCDC's `sink.dispatchers`; and whether they are merged."""

    matcher: Annotated[list[str], Field(min_length=1), AfterValidator(checks.matcher)]
    """Rules for the tables that it applies to, by their names upstream. The first that matches a table is used."""
    target_schema: Annotated[str, AfterValidator(checks.target_name)] = ""
    """The schema in the target: text in which `{schema}` and `{table}` stand for the upstream's names. `""`: as
    upstream."""
    target_table: Annotated[str, AfterValidator(checks.target_name)] = ""
    """The table's name in the target, likewise."""
    topic: str = ""
    """Used by TiCDC only: no effect here."""
    dispatcher: str = ""
    """Used by TiCDC only: no effect here."""
    partition: str = ""
    """Used by TiCDC only: no effect here."""
    index: str = ""
    """Used by TiCDC only: no effect here."""
    columns: list[str] = []
    """Used by TiCDC only: no effect here."""
    merge: bool = False
    """Whether several of these tables may share one table of the target (`docs/merging.md`). Needs `extract-table`,
    `extract-schema` or both, by which their rows differ."""
    extract_table: ExtractTableSection = ExtractTableSection()
    extract_schema: ExtractSchemaSection = ExtractSchemaSection()
    extract_source: ExtractSourceSection = ExtractSourceSection()

    @property
    def origins(self) -> tuple[tuple[str, str, str], ...]:
        """Of each column that tells whose a row is: its name, what is read (`table`, `schema`, `source`), by what."""
        found = (
            (self.extract_source.target_column, "source", self.extract_source.source),
            (self.extract_schema.target_column, "schema", self.extract_schema.schema_regexp),
            (self.extract_table.target_column, "table", self.extract_table.table_regexp),
        )
        return tuple(one for one in found if any((one[0], one[2])))

    @model_validator(mode="after")
    def _tells_apart(self) -> Self:
        columns = [column for column, _, _ in self.origins]
        message = ""
        if any(not all(one) for one in self.origins):
            message = (
                "extract-table, extract-schema and extract-source need target-column and what it holds, or neither"
            )
        elif columns and not self.merge:
            message = "extract-table, extract-schema and extract-source are of merged tables: they need merge = true"
        elif self.merge and not any(kind != "source" for _, kind, _ in self.origins):
            message = "merge needs extract-table or extract-schema: rows with equal keys would overwrite each other"
        elif self.merge and not (self.target_schema or self.target_table):
            message = "merge needs target-schema or target-table: the table that the rows lie in"
        elif len({folded(column) for column in columns}) != len(columns):
            message = "extract-table, extract-schema and extract-source need a target-column each"
        if message:
            raise ValueError(message)
        return self


class ColumnSelectorSection(Section):
    """Which columns of some tables are replicated, as in TiCDC's `sink.column-selectors`; see `docs/columns.md`."""

    matcher: Annotated[list[str], Field(min_length=1), AfterValidator(checks.matcher)]
    """Rules for the tables that it applies to, by their names upstream. The first that matches a table is used."""
    columns: Annotated[list[str], Field(min_length=1), AfterValidator(checks.columns)]
    """Rules for columns, ignoring case: `*`, `!ssn`, `tmp_*`. The last one that matches decides. If all of them
    exclude, every other column is replicated."""


class ColumnMaskSection(Section):
    """The values that some columns get in the target instead of upstream's; see `docs/columns.md`."""

    matcher: Annotated[list[str], Field(min_length=1), AfterValidator(checks.matcher)]
    """Rules for the tables that it applies to, by their names upstream."""
    columns: Annotated[list[str], Field(min_length=1), AfterValidator(checks.columns)]
    """Rules for columns, as in a selector. The first mask that matches a column is used."""
    value: str | None = None
    """A constant that replaces every value except NULL."""
    hash_key: Annotated[str, Field(min_length=16)] | None = Field(default=None, repr=False)
    """Replace every value except NULL by its HMAC-SHA-256 with this key, in hexadecimal digits. At least 16 characters;
    use `${NAME}` or `file:PATH`."""
    hash_length: Annotated[int, Field(ge=16, le=HASH_LENGTH)] = HASH_LENGTH
    """How many of the 64 digits are kept."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.value is None) == (self.hash_key is None):
            message = "give either value or hash-key"
            raise ValueError(message)
        return self


class SinkSection(Section):
    """The names of tables in the target (`docs/routes.md`), and which columns they get (`docs/columns.md`)."""

    dispatchers: list[DispatcherSection] = []
    """Each `[[sink.dispatchers]]` gives some tables another schema or name. The blocks of a TiCDC changefeed can be
    pasted; their other keys have no effect here."""
    column_selectors: list[ColumnSelectorSection] = []
    """Each `[[sink.column-selectors]]` leaves out columns of some tables. The blocks of a TiCDC changefeed can be
    pasted."""
    column_masks: list[ColumnMaskSection] = []
    """Each `[[sink.column-masks]]` replaces the values of some columns."""
