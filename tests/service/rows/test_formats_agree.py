"""One history through every format and transport: the same tables, values with their storage classes, and checkpoint.

Recorded is Canal-JSON, by TiCDC's own encoder; the other formats are written from it by `tests.simple_protocol`,
`tests.open_protocol` and `tests.storage_files`.
"""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from tests.open_protocol import as_open
from tests.service.cells import OURS, SqliteCells
from tests.service.lab import recorded
from tests.service.local import LocalFeed
from tests.service.rows.test_storage_vectors import once, reading
from tests.simple_protocol import as_simple
from tests.storage_files import CsvOptions, Storage, write

pytestmark = pytest.mark.service

Sent = Iterable[Message]
TOPICS: dict[str, tuple[str, Callable[[Sent], Sent]]] = {
    "canal-json": ("canal-json", lambda messages: messages),
    "simple": ("simple", as_simple),
    "open": ("open-protocol", as_open),
    "open, without old values": ("open-protocol", lambda messages: as_open(messages, old_values=False)),
}
FILES: dict[str, CsvOptions | None] = {
    "files of canal-json": None,
    "files of csv": CsvOptions(),
    "files of csv, with old values": CsvOptions(old_value=True, header=True, binary="hex"),
    "files of csv, escaped": CsvOptions(delimiter="|;", quote=""),
}
RECORDINGS = ("split.index-value.split", "types.table", "ddl-basic.restarts", "ddl-changes.index-value",
              "keys.index-value.split", "names.table", "bank.index-value.restarts")  # fmt: skip


def content(directory: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, each value with its storage class."""
    found = {}
    for name, file in SqliteCells(directory).files().items():
        if name == OURS:
            continue
        with closing(sqlite3.connect(file)) as database:
            tables = [table for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                quoted = '"' + table.replace('"', '""') + '"'
                info = database.execute(f"PRAGMA table_info({quoted})").fetchall()
                columns = ['"' + row[1].replace('"', '""') + '"' for row in info]
                values = ", ".join(f"typeof({column}), {column}" for column in columns)
                rows = database.execute(f"SELECT {values} FROM {quoted}").fetchall()
                found[f"{name}.{table}"] = [tuple(row[1] for row in info), *sorted(rows, key=repr)]
    return found


@pytest.mark.cells(by_turns=("recording",))
@pytest.mark.parametrize("recording", RECORDINGS)
def test_the_target_is_the_same(recording: str, tmp_path: Path) -> None:
    messages, results = recorded(recording), {}
    for number, (name, (protocol, written)) in enumerate(TOPICS.items()):
        out = tmp_path / f"topic{number}"
        feed = LocalFeed.into(f"sqlite:///{out}", SqliteCells(out), tmp_path).with_(source={"protocol": protocol})
        feed.send(list(written(messages)))
        results[name] = (feed.once().checkpoint_ts, content(out))
    for number, (name, csv) in enumerate(FILES.items()):
        out, root = tmp_path / f"files{number}", tmp_path / f"storage{number}"
        feed = reading(LocalFeed.into(f"sqlite:///{out}", SqliteCells(out), tmp_path), root, csv)
        for files in Storage(messages, csv=csv).steps():
            write(files, root)
        results[name] = (once(feed).checkpoint_ts, content(out))
    checkpoint_ts, expected = results.pop("canal-json")
    assert expected
    for name, found in results.items():
        assert found == (checkpoint_ts, expected), name
