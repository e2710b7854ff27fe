"""Schema files: the columns of a table's version, and the DDL that made it.

A statement about several tables (RENAME, CREATE) comes in a file for each, of one version: renames are put together
again, in an order in which one after the other can be done. Source: TiCDC's `pkg/cloudstorage/schema_file.go`.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

import msgspec

from consumer.codec.canal_json import UNREADABLE, Tso
from consumer.codec.ddl_types import ddl_type
from ordering.errors import InputError

_ODD = "not written by TiCDC as documented, or half written"
_RENAME = re.compile(
    r"\s*RENAME\s+TABLES?\s+(?P<old>`(?:[^`]|``)+`(?:\s*\.\s*`(?:[^`]|``)+`)?|[^\s,`]+)\s+TO\s+"
    r"(?P<new>`(?:[^`]|``)+`(?:\s*\.\s*`(?:[^`]|``)+`)?|[^\s,;`]+)\s*;?\s*",
    re.IGNORECASE,
)


class FileColumn(msgspec.Struct, frozen=True, gc=False):
    """A column. `type`: in capitals, with ` UNSIGNED` behind."""

    name: Annotated[str, msgspec.Meta(min_length=1)] = msgspec.field(name="ColumnName")
    type: Annotated[str, msgspec.Meta(min_length=1)] = msgspec.field(name="ColumnType")
    primary: str = msgspec.field(default="", name="ColumnIsPk")
    members: tuple[str, ...] | None = msgspec.field(default=None, name="ColumnElems")


class TableFile(msgspec.Struct, frozen=True, gc=False):
    """A schema file."""

    table: str = msgspec.field(name="Table")
    database: str = msgspec.field(name="Schema")
    version: Tso = msgspec.field(name="TableVersion")
    query: str = msgspec.field(default="", name="Query")
    type: int = msgspec.field(default=0, name="Type")
    columns: tuple[FileColumn, ...] | None = msgspec.field(default=None, name="TableColumns")
    total: int = msgspec.field(default=0, name="TableColumnsTotal")


class FileDdl(NamedTuple):
    """A DDL that schema files tell."""

    commit_ts: int
    type: str
    database: str
    table: str
    sql: str
    path: str


_decode = msgspec.json.Decoder(TableFile).decode


def table_file(content: bytes, where: str) -> TableFile:
    """Read a schema file. Raises InputError with its address."""
    try:
        found = _decode(content)
    except UNREADABLE as error:
        raise InputError(f"a schema file can't be read: {error}", where=where, hint=_ODD) from None
    names = [column.name for column in found.columns or ()]
    if len(names) != found.total or len(set(names)) < len(names):
        fact = f"a schema file names {len(set(names))} columns and says {found.total}"
        raise InputError(fact, where=where, hint=_ODD)
    return found


def ddls_of(files: Iterable[tuple[str, TableFile]]) -> list[FileDdl]:
    """The DDLs that files (path, content) of one version tell, each once and in an order in which they can be done."""
    found: dict[tuple[str, str, str], FileDdl] = {}
    for path, one in sorted(files):
        if one.query:
            ddl = FileDdl(one.version, ddl_type(one.type), one.database, one.table, one.query, path)
            found.setdefault((one.database, one.table, one.query), ddl)
    renames = [ddl for ddl in found.values() if ddl.type == "RENAME"]
    if len(renames) < 2:  # noqa: PLR2004 nothing to put together
        return list(found.values())
    return [*(ddl for ddl in found.values() if ddl.type != "RENAME"), _renames_at_once(renames)]


def _renames_at_once(renames: Sequence[FileDdl]) -> FileDdl:
    """One statement for the renames of a version. Raises InputError where one can't be read."""
    pairs = []
    for ddl in renames:
        match = _RENAME.fullmatch(ddl.sql)
        if match is None:
            hint = "source.storage has several RENAMEs of one version: make the change by hand and decide the DDL"
            raise InputError(f"a RENAME can't be read: {ddl.sql[:200]}", where=ddl.path, hint=hint)
        pairs.append((_named(match["old"], ddl.database), _named(match["new"], ddl.database)))
    listed = ", ".join(f"{old} TO {new}" for old, new in in_turn(pairs))
    return renames[0]._replace(sql=f"RENAME TABLE {listed}")


def _named(name: str, database: str) -> str:
    """A name with its database, quoted: only then do two of them compare."""
    parts = re.findall(r"`((?:[^`]|``)+)`|([^\s.`]+)", name)
    texts = [(quoted or plain.replace("`", "``")) for quoted, plain in parts]
    whole = texts if len(texts) > 1 else [database.replace("`", "``"), *texts]
    return ".".join(f"`{text}`" for text in whole)


def in_turn(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Renames that happened at once, so that none meets a table that has yet to go; a circle goes by a third name."""
    left, done = list(pairs), []
    spare = 0
    while left:
        old_names = {old for old, _ in left}
        free = next((pair for pair in left if pair[1] not in old_names), None)
        if free is not None:
            left.remove(free)
            done.append(free)
            continue
        old, new = left.pop(0)
        aside = f"{old.rpartition('.`')[0]}.`_ticdc_reconciler_{spare}`"
        spare += 1
        done.append((old, aside))
        left.append((aside, new))
    return done
