"""What a directory that Dumpling wrote holds: the snapshot's TSO, definitions, files of rows.

Dumpling names files by database and table, in which it writes `%2E` for a dot and so on, and writes `metadata` last:
without `Finished dump at` the dump is not whole.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from ordering.errors import InputError
from ordering.events import TableName
from ordering.timestamps import CheckpointTs

METADATA = "metadata"
_PACKED = r"(?P<packing>\.(?:gz|gzip|zst|zstd|snappy))?"
_NAME = r"(?P<database>[^.]+)"
_TABLE = rf"{_NAME}\.(?P<table>[^.]+)"
_FORMS = {
    "database": re.compile(rf"{_NAME}-schema-create\.sql{_PACKED}"),
    "view": re.compile(rf"{_TABLE}-schema-view\.sql{_PACKED}"),
    "sequence": re.compile(rf"{_TABLE}-schema-sequence\.sql{_PACKED}"),
    "triggers": re.compile(rf"{_TABLE}-schema-(?:triggers|post)\.sql{_PACKED}"),
    "policy": re.compile(rf"[^.]+-placement-policy-create\.sql{_PACKED}"),
    "table": re.compile(rf"{_TABLE}-schema\.sql{_PACKED}"),
    "rows": re.compile(rf"{_TABLE}(?:\.(?P<number>\d+))?\.(?P<form>sql|csv|parquet){_PACKED}"),
}
_LAST_TSO = 2**63 - 1
_HINT = "let Dumpling finish, or make a new dump"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of one table's rows; `form` is `sql` or `csv`."""

    path: Path
    table: TableName
    form: str
    size: int

    @property
    def name(self) -> str:
        """What it is called in the directory."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class Dump:
    """A whole dump. `tso`: the snapshot that it is of; `left`: names of files that nothing is done with."""

    directory: Path
    tso: CheckpointTs
    databases: dict[str, Path] = field(default_factory=dict)
    tables: dict[TableName, Path] = field(default_factory=dict)
    views: dict[TableName, Path] = field(default_factory=dict)
    files: list[DataFile] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def read_dump(directory: Path) -> Dump:
    """What a directory holds. Raises InputError if it is no dump of TiDB, or not a whole one."""
    if not directory.is_dir():
        raise InputError(f"{directory} is no directory", hint="name the directory that Dumpling wrote (-o)")
    dump = Dump(directory, snapshot_of(directory))
    for path in sorted(directory.iterdir()):
        if path.is_file() and path.name != METADATA:
            _sort_in(dump, path)
    for name in dump.views:
        dump.tables.pop(name, None)  # a view has a file as a table has, for tools that make all tables first
    if not (dump.tables or dump.files or dump.databases):
        raise InputError(f"{directory} holds neither definitions nor rows", hint="name the directory of a dump")
    return dump


def _sort_in(dump: Dump, path: Path) -> None:
    matches = ((kind, form.fullmatch(path.name)) for kind, form in _FORMS.items())
    kind, match = next(((kind, match) for kind, match in matches if match), ("", None))
    if match is None:
        dump.left.append(path.name)
        return
    names = {key: unquote(text) for key, text in match.groupdict().items() if text and key in {"database", "table"}}
    if kind == "database":
        dump.databases[names["database"]] = path
    elif kind in {"table", "view"}:
        (dump.tables if kind == "table" else dump.views)[TableName(**names)] = path
    elif kind == "rows":
        _refuse_parquet(path, match["form"])
        dump.files.append(DataFile(path, TableName(**names), match["form"], path.stat().st_size))
    else:
        dump.left.append(path.name)


def _refuse_parquet(path: Path, form: str) -> None:
    if form == "parquet":
        raise InputError("files of Parquet can't be loaded", where=f"file={path.name}", hint="dump as sql or csv")


def snapshot_of(directory: Path) -> CheckpointTs:
    """The TSO that a dump is a snapshot of. Raises InputError."""
    path = directory / METADATA
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't read the dump's metadata: {error}", where=str(path), hint=_HINT) from error
    if re.search(r"^Finished dump at:", text, re.MULTILINE) is None:
        raise InputError("the dump is not whole: its metadata lacks `Finished dump at`", where=str(path), hint=_HINT)
    found = set(_positions(text, path))
    if len(found) != 1:
        raise InputError(
            f"the metadata names {len(found)} snapshots of TiDB, one is needed",
            where=str(path),
            hint="dump TiDB itself, with --consistency snapshot (which is the default there)",
        )
    tso = found.pop()
    if not 0 < tso <= _LAST_TSO:
        raise InputError(f"Pos: {tso} is no TSO", where=str(path), hint="dump TiDB with --consistency snapshot")
    return CheckpointTs(tso)


def _positions(text: str, path: Path) -> Iterator[int]:
    """The positions that the metadata tells: TiDB's say `tidb-binlog` for the log, also where there is none."""
    for log, position in re.findall(r"^\s*Log:\s*(\S*)\s*^\s*Pos:\s*(\d+)\s*$", text, re.MULTILINE):
        if log != "tidb-binlog":
            hint = "TiDB's says tidb-binlog: dump the TiDB cluster whose changes TiCDC sends"
            raise InputError(f"this is a dump of MySQL or MariaDB (log {log})", where=str(path), hint=hint)
        yield int(position)
