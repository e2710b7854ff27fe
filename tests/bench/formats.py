"""`python -m tests.bench.formats`: one load as Canal-JSON, as Simple JSON, and as CSV files in a store, in turns.

All into empty tables of one server. Topics lie in one broker; files are served as S3 does by a process beside, in files
of 64 MiB as TiCDC writes them by default. Exit code 1 if a table is wrong.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import orjson

from consumer.embedded import KafkaBroker
from tests.bench.load import BASE_MS, Change, Load, Mark, Message, create_statement
from tests.bench.measure import Result, Sections, Sending, drop_database, measured_run, write_config
from tests.bench.servers import SERVERS
from tests.service.buckets import Bucket
from tests.service.lab import toml_of

FORMS = ("canal-json", "simple", "csv")
_FILE_BYTES = 64 << 20
_VERSION = (BASE_MS - 1) << 18
_COLUMNS = (("c", "char"), ("id", "int"), ("k", "int"), ("pad", "char"))


class SimpleLoad(Load):
    """The same load in the Simple protocol."""

    def messages(self) -> Iterator[Message | Mark]:
        """See `Load.messages`: DDLs go to every partition."""
        made = {"type": "QUERY", "sql": f"CREATE DATABASE `{self.database}`", "commitTs": (BASE_MS - 1000) << 18}
        table = {"type": "CREATE", "sql": create_statement(f"`{self.table}`"), "commitTs": _VERSION}
        for told in (made, table | {"tableSchema": self._schema()}):
            yield from self._everywhere(told)
        for step in self.changes():
            if isinstance(step, Change):
                yield Message(self.partition_of(step.id), self._row(step))
            else:
                yield step
                yield from self._everywhere({"type": "WATERMARK", "commitTs": step.ts})

    def _everywhere(self, told: dict[str, Any]) -> Iterator[Message]:
        value = orjson.dumps({"version": 1, **told, "buildTs": BASE_MS})
        return (Message(partition, value) for partition in range(self.partitions))

    def _schema(self) -> dict[str, Any]:
        columns = [{"name": name, "dataType": {"mysqlType": kind}, "nullable": False} for name, kind in _COLUMNS]
        key = {"name": "PRIMARY", "unique": True, "primary": True, "nullable": False, "columns": ["id"]}
        told = {"schema": self.database, "table": self.table, "tableID": 104, "version": _VERSION}
        return {**told, "columns": columns, "indexes": [key]}

    def _row(self, change: Change) -> bytes:
        kind = "INSERT" if change.old is None else "DELETE" if change.new is None else "UPDATE"
        new = f',"data":{self.image(change.id, change.new)}' if change.new else ""
        old = f',"old":{self.image(change.id, change.old)}' if change.old else ""
        return (
            f'{{"version":1,"database":"{self.database}","table":"{self.table}","tableID":104,"type":"{kind}",'
            f'"commitTs":{change.commit_ts},"buildTs":{BASE_MS},"schemaVersion":{_VERSION}{new}{old}}}'
        ).encode()


def write_files(load: Load, root: Path) -> int:
    """Write a load as the storage sink writes CSV; returns how many bytes."""
    made, base = (BASE_MS - 1000) << 18, {"Schema": load.database, "Version": 1}
    database = {**base, "Table": "", "TableVersion": made, "Query": f"CREATE DATABASE `{load.database}`", "Type": 1}
    keys: dict[str, Any] = {"ColumnIsPk": "true", "ColumnNullable": "false"}
    columns = [{"ColumnName": n, "ColumnType": kind.upper(), **(keys if n == "id" else {})} for n, kind in _COLUMNS]
    table = {**base, "Table": load.table, "TableVersion": _VERSION, "Query": create_statement(f"`{load.table}`")}
    table |= {"Type": 3, "TableColumns": columns, "TableColumnsTotal": len(columns)}
    place = root / load.database
    _write(place / f"meta/schema_{made}_1.json", orjson.dumps(database | {"TableColumnsTotal": 0}), made)
    _write(place / load.table / f"meta/schema_{_VERSION}_1.json", orjson.dumps(table), _VERSION)
    lines: list[bytes] = []
    size = held = last = number = 0
    for step in load.changes():
        if isinstance(step, Change):
            lines.append(_line(load, step))
            held += len(lines[-1])
        last = step.commit_ts if isinstance(step, Change) else step.ts
        if held >= _FILE_BYTES:
            number, size, held = number + 1, size + held, 0
            _write_rows(place / load.table, number, lines, last)
    _write_rows(place / load.table, number + 1, lines, last)
    _write(root / "metadata", orjson.dumps({"checkpoint-ts": last}), last)
    return size + held


def _line(load: Load, change: Change) -> bytes:
    row = change.new or change.old or (0, 0, 0)
    op = "I" if change.old is None else "D" if change.new is None else "U"
    c, pad = load.text(row[1], 10), load.text(row[2], 5)
    return f'"{op}","{load.table}","{load.database}",{change.commit_ts},"{c}",{change.id},{row[0]},"{pad}"\r\n'.encode()


def _write_rows(table: Path, number: int, lines: list[bytes], last: int) -> None:
    _write(table / f"{_VERSION}/2023-11-14/CDC{number:020d}.csv", b"".join(lines), last)
    lines.clear()


def _write(path: Path, content: bytes, ts: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=((ts >> 18) * 1_000_000,) * 2)


def _serve(place: Path, told: Connection) -> None:
    """Serve files as S3 does, until the other end goes."""
    with Bucket(place) as bucket:
        told.send(bucket.endpoint)
        told.poll(None)


class _Store:
    """An object store in a process of its own: a run must not wait for this one."""

    def __init__(self, place: Path) -> None:
        context = get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(place, theirs), daemon=True)
        self._process.start()
        self.endpoint = self._ours.recv()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._ours.close()
        self._process.terminate()
        self._process.join()


def main() -> int:
    """Measure, and print a line a run."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.formats", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--target", choices=SERVERS, default="mysql")
    parser.add_argument("--runs", type=int, default=2, help="rounds, each with a run of every form")
    parser.add_argument("--native", choices=("true", "false"), default="true")
    told = parser.parse_args()
    results: list[Result] = []
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-bench-")))
        bootstrap = stack.enter_context(KafkaBroker(place / "kafka", lasting=True)).bootstrap
        uri = stack.enter_context(SERVERS[told.target](place / "server")).uri
        store = stack.enter_context(_Store(place))
        database = f"bench_{uuid4().hex[:8]}"
        loads = {form: (SimpleLoad if form == "simple" else Load)(told.events, database=database) for form in FORMS}
        for form, load in loads.items():
            if form == "csv":
                size = write_files(load, place / "buckets" / "cdc" / database)
            else:
                size = Sending(bootstrap, f"bench-{form}", load.partitions).send(load.messages())
            print(f"{form}: {load.events} events, {size >> 20} MB", file=sys.stderr)
        native = toml_of({"spark": {"native": told.native == "true"}})
        for number in range(told.runs):
            for form, load in loads.items():
                changefeed = f"{form}-{number}"
                config = write_config(
                    place / f"{changefeed}.toml", changefeed=changefeed, bootstrap=bootstrap, topic="", uri=uri,
                    source=_source(form, bootstrap, f"s3://cdc/{database}", store.endpoint), extra=native,
                )  # fmt: skip
                results.append(measured_run(form, config, load, uri))
                print(results[-1].line(), flush=True)
                drop_database(uri, database)
    return 0 if all(result.correct for result in results) else 1


def _source(form: str, bootstrap: str, storage: str, endpoint: str) -> Sections:
    if form != "csv":
        return {"source": {"bootstrap-servers": bootstrap, "topics": [f"bench-{form}"], "protocol": form}}
    options = {"endpoint": endpoint, "access-key-id": "a", "secret-access-key": "b", "region": "us-east-1"}
    return {
        "source": {"protocol": "csv", "storage": storage},
        "source.storage-options": {**options, "allow-http": "true"},
    }


if __name__ == "__main__":
    sys.exit(main())
