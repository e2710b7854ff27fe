"""What an upstream holds, as an oracle of `tests.service.cells`: read from the server itself, cell by cell."""

import struct
from collections.abc import Iterable
from typing import Any

from tests.loading.dumping import asking, ticked
from tests.service.landing import shortest

_BINARY = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")


def oracle_of(uri: str, databases: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Every table of some databases."""
    found = {}
    with asking(uri) as query:
        for database in databases:
            for name, _ in query(f"SHOW FULL TABLES FROM {ticked(database)} WHERE Table_type = 'BASE TABLE'"):
                found[f"{database}.{name.decode()}"] = _table(query, f"{ticked(database)}.{ticked(name.decode())}")
    return found


def _table(query: Any, place: str) -> dict[str, Any]:
    columns = [(row[0].decode(), row[1].decode()) for row in query(f"SHOW COLUMNS FROM {place}")]
    rows = query(f"SELECT {', '.join(ticked(name) for name, _ in columns)} FROM {place}")
    return {
        "create": query(f"SHOW CREATE TABLE {place}")[0][1].decode(),
        "columns": [name for name, _ in columns],
        "types": [kind for _, kind in columns],
        "rows": [[_cell(kind, v) for (_, kind), v in zip(columns, row, strict=True)] for row in rows],
    }


def _cell(kind: str, value: bytes | None) -> str | None:
    if value is None:
        return None
    if kind.startswith(_BINARY):
        return f"0x{value.hex()}"
    if kind.startswith("bit"):
        return str(int.from_bytes(value))
    if kind.startswith("float"):
        return shortest(struct.unpack("f", struct.pack("f", float(value)))[0])
    return value.decode()
