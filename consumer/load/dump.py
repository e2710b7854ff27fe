"""What a directory that Dumpling wrote holds: the snapshot's TSO, definitions, files of rows.

Dumpling names files by database and table, in which it writes `%2E` for a dot and so on, and writes `metadata` last:
without `Finished dump at` the dump is not whole. Every file below the directory is understood, or is one of a few kinds
of which nothing is to be done, or was named by `--ignore`: any other is an error, for it may hold rows.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from ordering.errors import ConfigError, InputError
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
    "triggers": re.compile(rf"{_NAME}(?:\.(?P<table>[^.]+))?-schema-(?:triggers?|post)\.sql{_PACKED}"),
    "policy": re.compile(rf"[^.]+-placement-policy-create\.sql{_PACKED}"),
    "table": re.compile(rf"{_TABLE}-schema\.sql{_PACKED}"),
    "rows": re.compile(rf"{_TABLE}(?:\.(?P<number>[0-9]+))?\.(?P<form>sql|csv|parquet){_PACKED}"),
}
_PROVEN = (".gz", ".gzip", ".zst", ".zstd")
"""Forms of packed files that end with a mark; snappy's has none."""
_SHOWN = 10
_NO_TEXT = re.compile("[\ud800-\udfff]")
"""What a name holds that is no UTF-8: Dumpling writes none."""
Name = TypeVar("Name")
_LAST_TSO = 2**63 - 1
_HINT = "let Dumpling finish, or make a new dump"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of one table's rows; `form` is `sql` or `csv`; `number`: of the table's files, -1 for one without."""

    path: Path
    table: TableName
    form: str
    size: int
    number: int = -1

    @property
    def is_proven(self) -> bool:
        """Whether it can't be read to its end if it was cut off, also where the cut is between two rows."""
        return self.path.suffix in _PROVEN

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


def read_dump(directory: Path, ignored: Sequence[str] = ()) -> Dump:
    """What a directory holds. `ignored`: patterns of files of which nothing is to be done, as below the directory.

    Raises InputError if it is no dump of TiDB, or not a whole one; ConfigError for files that are not understood.
    """
    if not directory.is_dir():
        raise InputError(f"{directory} is no directory", hint="name the directory that Dumpling wrote (-o)")
    dump = Dump(directory, snapshot_of(directory))
    unknown = []
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if (path.is_dir() and not path.is_symlink()) or name == METADATA:
            continue
        if any(fnmatchcase(name, pattern) for pattern in ignored):
            dump.left.append(name)
        elif not path.is_file() or path.parent != directory or not _sort_in(dump, path):
            unknown.append(name)
    _refuse_unknown(dump, unknown)
    for view in dump.views:
        dump.tables.pop(view, None)  # a view has a file as a table has, for tools that make all tables first
    if not (dump.tables or dump.files or dump.databases):
        raise InputError(f"{directory} holds neither definitions nor rows", hint="name the directory of a dump")
    _check_files(dump)
    return dump


def _sort_in(dump: Dump, path: Path) -> bool:
    """Put a file where it belongs, if its name tells."""
    matches = ((kind, form.fullmatch(path.name)) for kind, form in _FORMS.items())
    kind, match = next(((kind, match) for kind, match in matches if match), ("", None))
    if match is None or _NO_TEXT.search(path.name):
        return False
    names = {key: unquote(text) for key, text in match.groupdict().items() if text and key in {"database", "table"}}
    if kind == "database":
        _put(dump.databases, names["database"], path)
    elif kind in {"table", "view"}:
        _put(dump.tables if kind == "table" else dump.views, TableName(**names), path)
    elif kind == "rows":
        _refuse_parquet(path, match["form"])
        number = int(match["number"] or -1)
        dump.files.append(DataFile(path, TableName(**names), match["form"], path.stat().st_size, number))
    else:
        dump.left.append(path.name)
    return True


def _put(known: dict[Name, Path], name: Name, path: Path) -> None:
    if name in known:
        raise _doubtful("two files define the same", [known[name].name, path.name])
    known[name] = path


def _refuse_unknown(dump: Dump, unknown: Sequence[str]) -> None:
    if unknown:
        more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        raise ConfigError(
            f"the dump's directory holds {len(unknown)} files whose names are not Dumpling's:"
            f" {', '.join(map(repr, unknown[:_SHOWN]))}{more}",
            where=str(dump.directory),
            hint="rows may be in them: dump without --output-filename-template, into one new directory, packed as gzip,"
            " zstd or snappy if at all; --ignore PATTERN leaves files out",
        )


def _check_files(dump: Dump) -> None:
    """Each of a table's files is one part of it, all are of one form, and the table is defined if any is."""
    by_table: dict[TableName, dict[int, DataFile]] = {}
    for file in dump.files:
        others = by_table.setdefault(file.table, {})
        first = next(iter(others.values()), file)
        if dump.tables and file.table not in dump.tables:
            hint = "dump the definitions of all tables or of none; --ignore PATTERN leaves the file out"
            raise _doubtful("the dump defines other tables, not that of these rows", [file.name], hint)
        if file.number in others or (file.number < 0) != (first.number < 0):
            raise _doubtful("two files hold the same part of a table", [others.get(file.number, first).name, file.name])
        if file.form != first.form:
            raise _doubtful("a table's files are of different forms", [first.name, file.name])
        others[file.number] = file


def _doubtful(what: str, names: Sequence[str], hint: str = "") -> ConfigError:
    hint = hint or "the directory holds more than one dump: make a new one, or name what is not of it with --ignore"
    return ConfigError(f"{what}: {', '.join(names)}", where=f"file={names[-1]}", hint=hint)


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
