"""What has to be done to rows before a DDL, where MySQL and MariaDB convert in another way than TiDB.

Done twice it changes nothing more, so a crash in between is no harm.
"""

import re
from collections.abc import Iterator

from ordering.events import TableName
from sinks.ddl.model import ChangeColumn, TypeDef
from sinks.ddl.parse.statement import DdlKind, read_statement
from sinks.ddl.parse.tables import read_changes
from sinks.ddl.rows.default_values import INTEGERS, REALS
from sinks.mysql.catalog import quoted
from sinks.rows.schema import Catalog, Column, Shape, TableSchema

_TEXT = re.compile(r"char|varchar|\w*text", re.IGNORECASE)
_ZERO_WITH_SIGN = "^ *-(0+[.]?0*|[.]0+)([eE][-+]?[0-9]+)? *$"
_FRACTION = re.compile(r"(datetime|timestamp|time)\([1-6]\)", re.IGNORECASE)


def prepared(sql: str, session: str | None, catalog: Catalog) -> Iterator[str]:
    """What is to become whole numbers is rounded first, as in TiDB: '2.5', '1e2', fractions of seconds.

    So is a FLOAT that becomes FLOAT(7,2), or a DOUBLE that becomes such a DOUBLE or FLOAT: the server only shows it
    rounded, or rounds another number. A text '-0' becomes '0' before it is a DOUBLE or FLOAT: TiDB stores no such zero.
    """
    statement = read_statement(sql)
    if statement.kind is not DdlKind.ALTER_TABLE:
        return
    reference = statement.tables[0]
    schema = catalog.get(catalog.spelled(TableName(reference.database or session or "", reference.table)))
    for change in read_changes(sql):
        if isinstance(change, ChangeColumn) and schema is not None:
            columns = (column for column in schema.columns if column.name.lower() == change.old.lower())
            yield from (update for column in columns if (update := _rounding(schema, column, change.column.type)))


def _rounding(schema: TableSchema, column: Column, becomes: TypeDef) -> str:
    """The statement that rounds a column's values and changes no other; "" for types whose values need none."""
    name, place = quoted(column.name), f"{quoted(schema.name.database)}.{quoted(schema.name.table)}"
    kept = "".join(f", {quoted(c.name)} = {quoted(c.name)}" for c in schema.columns if c.moved and c is not column)
    if becomes.base in REALS and len(becomes.numbers) > 1 and column.type.startswith((becomes.base, "double")):
        unit = f"1e{becomes.numbers[1]}"  # as servers and TiDB round what they store, which ROUND(x, n) does not
        # what a DOUBLE(12,5) holds may be the number beside the one that it shows, and that upstream holds
        value = f"(CAST({name} AS CHAR) + 0e0)" if column.type.startswith("double(") else name
        rounded = f"FLOOR({value}) + ROUND(({value} - FLOOR({value})) * {unit}) / {unit}"
        return f"UPDATE {place} SET {name} = {rounded}{kept}"  # noqa: S608 quoted
    if becomes.base in REALS and column.shape is Shape.TEXT and _TEXT.match(column.type):
        return f"UPDATE {place} SET {name} = '0'{kept} WHERE {name} REGEXP '{_ZERO_WITH_SIGN}'"  # noqa: S608 quoted
    if becomes.base not in INTEGERS:
        return ""
    if column.shape is Shape.TEXT and _TEXT.match(column.type):
        rounded = f"CAST(ROUND(CAST({name} AS DECIMAL(65,30))) AS CHAR)"
        return f"UPDATE {place} SET {name} = {rounded}{kept} WHERE {name} REGEXP '[^0-9]'"  # noqa: S608 quoted
    if moment := _FRACTION.match(column.type):
        kind = "TIME" if moment[1].lower() == "time" else "DATETIME"
        return f"UPDATE {place} SET {name} = CAST({name} AS {kind}){kept}"  # noqa: S608 quoted
    return ""
