"""A list of checksums, as `sha256sum *` writes it in the dump's directory: proof that every file is there and whole.

Dumpling writes none, and no file of its tells how many rows a table has: without such a list, and without packing, a
file that was cut off between two rows looks whole.
"""

import hashlib
import re
from pathlib import Path, PurePath

from consumer.load.dump import METADATA, Dump
from ordering.errors import ConfigError, InputError

_LINE = re.compile(r"([0-9a-f]{64})[ \t][ *](.+)")
_HINT = "copy the dump again from where the list was made, with `sha256sum * > LIST` in its directory"


def check_sums(dump: Dump, path: Path) -> None:
    """Compare all files of a dump with a list. Raises InputError for a file that is missing or another one."""
    listed = _listed(path)
    definitions = (*dump.databases.values(), *dump.tables.values(), *dump.views.values())
    wanted = [*definitions, *(file.path for file in dump.files)]
    for name in sorted({METADATA, *(one.name for one in wanted)} - listed.keys()):
        raise InputError("the list of checksums lacks a file of the dump", where=f"file={name}", hint=_HINT)
    for name in sorted(listed.keys()):
        place = dump.directory / name
        if place.resolve() != path.resolve() and name not in dump.left and _sum(place) != listed[name]:
            raise InputError("the checksum of a dump's file is not the listed one", where=f"file={name}", hint=_HINT)


def _listed(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"can't read the list of checksums: {error}", where=str(path)) from error
    matches = [_LINE.fullmatch(line) for line in lines if line]
    if not matches or None in matches:
        raise ConfigError("this is no list of `sha256sum`", where=str(path), hint=_HINT)
    return {PurePath(match[2]).name: match[1] for match in matches if match is not None}


def _sum(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        fact = "a file of the list of checksums is not in the dump"
        raise InputError(fact, where=f"file={path.name}", hint=_HINT) from error
    except OSError as error:
        raise InputError(f"a dump's file can't be read: {error}", where=f"file={path.name}") from error
