"""Names that Avro can't hold: TiCDC writes rows under others, which may be another table's or column's. Pure.

In the Avro protocol a name has letters, digits and `_` alone; TiCDC puts `_` for everything else (`SanitizeName` in
pingcap/ticdc, `pkg/sink/codec/common/helper.go`). So rows of `a-b` come as rows of `a_b`, and nothing in them tells.
Upstream's names are known from the target's tables, and from DDLs, which name them as they are.
"""

import re
from collections.abc import Iterable

from consumer.tasks.report import Report
from ordering.errors import TableMismatchError
from ordering.events import TableName
from sinks.rows.schema import Catalog

_FIRST = re.compile(r"[^A-Za-z_]", re.ASCII)
_OTHERS = re.compile(r"[^A-Za-z0-9_]", re.ASCII)
_HINT = (
    "leave the table out of the changefeed upstream ([filter] rules) and here, or set protocol=canal-json, simple or"
    " open-protocol in its sink URI, and the same here; begin with a new topic"
)


def avro_name(name: str) -> str:
    """What TiCDC calls it in Avro."""
    if _FIRST.match(name):
        name = f"_{name}" if name[0].isdecimal() and name[0].isascii() else f"_{name[1:]}"
    return _OTHERS.sub("_", name)


def refused_names(reports: Iterable[Report], catalog: Catalog) -> None:
    """Raise TableMismatchError for rows that may be another table's, or have values of another column."""
    tables: dict[TableName, TableName] = {}
    for name in catalog.tables:
        called = TableName(avro_name(name.database), avro_name(name.table))
        if called != name:
            tables[called] = name
    for report in reports:
        for name, offset, types in report.types:
            where = f"{report.range.partition} offset={offset}"
            if name in tables:
                fact = f"rows of {tables[name]} arrive as {name} too: it is not known to which a row belongs"
                raise TableMismatchError(fact, where=where, hint=_HINT)
            schema = catalog.get(name)
            for column in schema.columns if schema else ():
                if (sent := avro_name(column.name)) != column.name and sent in types:
                    fact = f"table {name}: values of column {column.name!r} arrive as {sent!r}"
                    raise TableMismatchError(fact, where=where, hint=_HINT)
