"""Broken files, schema files and `metadata`: each is an error that names the file, and the line where there is one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from consumer.config.model import Config, config_from
from consumer.formats.canal_json import CanalJson
from consumer.source.file_source import FileSource
from consumer.source.offer import Probe
from consumer.tasks.order import ReadTask
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import Report, refused_rows
from consumer.wiring import readers_of, storage_of
from ordering.errors import InputError, ReconcilerError, SourceUnreachableError
from ordering.progress import PartitionProgress, Progress
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Window
from tests.simple_protocol import encoded

V, TS = 463267587686400000, 463267587686400009
AT = f"shop/t/{V}/2026-01-01"
CSV1, JSON1 = f"{AT}/CDC00000000000000000001.csv", f"{AT}/CDC00000000000000000001.json"
CSV2 = f"{AT}/CDC00000000000000000002.csv"
SCHEMA = f"shop/t/meta/schema_{V}_1234567890.json"
COLUMNS = [
    {"ColumnName": "id", "ColumnType": "INT", "ColumnIsPk": "true", "ColumnNullable": "false"},
    {"ColumnName": "name", "ColumnType": "VARCHAR"},
    {"ColumnName": "raw", "ColumnType": "VARBINARY"},
    {"ColumnName": "kind", "ColumnType": "ENUM", "ColumnElems": ["a", "b"]},
    {"ColumnName": "some", "ColumnType": "SET", "ColumnElems": ["x", "y"]},
    {"ColumnName": "share", "ColumnType": "DOUBLE"},
]


def schema(**changes: Any) -> bytes:
    told = {"Table": "t", "Schema": "shop", "Version": 1, "TableVersion": V, "Query": "", "Type": 0}
    told |= {"TableColumns": COLUMNS, "TableColumnsTotal": len(COLUMNS), **changes}
    return json.dumps(told, indent=4).encode()


def line(*, op: str = '"I"', ts: Any = TS, rest: str = '1,"n","AAE=","a","x,y",1.5', name: str = '"t","shop"') -> str:
    return f"{op},{name},{ts},{rest}\r\n"


def row(**changes: Any) -> bytes:
    told = {"id": 0, "database": "shop", "table": "t", "pkNames": ["id"], "isDdl": False, "type": "INSERT", "sql": ""}
    told |= {"mysqlType": {"id": "int"}, "old": None, "data": [{"id": "1"}], "_tidb": {"commitTs": TS}}
    return encoded({**told, **changes}) + b"\r\n"


GOOD: dict[str, bytes] = {
    "metadata": json.dumps({"checkpoint-ts": TS + 5}).encode(),
    SCHEMA: schema(),
    CSV1: (line() + line(rest="2,\\N,\\N,\\N,\\N,\\N")).encode(),
}


class Broken(NamedTuple):
    """Files instead of the good ones (None: gone), and what the error says and names."""

    files: Mapping[str, bytes | None]
    told: str
    where: str
    protocol: str = "csv"
    kind: type[ReconcilerError] = InputError


def csv(second: str, told: str, where: str = f"{CSV1}, line 2") -> Broken:
    return Broken({CSV1: (line() + second).encode(), CSV2: line().encode()}, told, where)


def lines(second: bytes, told: str, number: int | None = 2) -> Broken:
    where = f"files={AT}/CDC number=1" if number is None else f"{JSON1}, line {number}"
    return Broken({CSV1: None, JSON1: row() + second}, told, where, "canal-json")


HEADER = "ticdc-meta$operation,ticdc-meta$table,ticdc-meta$schema,ticdc-meta$commit-ts,id,name,raw,kind,some,share\r\n"
CASES: dict[str, Broken] = {
    "op": csv(line(op='"X"'), "begins with 'X'"),
    "op-missing": csv(line(op=""), "begins with ''"),
    "commit-ts-missing": csv('"I","t","shop",1,"n","AAE=","a","x",1\r\n', "holds 9 fields"),
    "commit-ts-text": csv(line(ts='"n"'), "lacks commit-ts"),
    "commit-ts-zero": csv(line(ts=0), "lacks commit-ts"),
    "commit-ts-negative": csv(line(ts=-1), "lacks commit-ts"),
    "commit-ts-null": csv(line(ts="\\N"), "lacks commit-ts"),
    "commit-ts-endless": csv(line(ts="9" * 5000), "lacks commit-ts"),
    "commit-ts-too-large": csv(line(ts=2**64), "lacks commit-ts"),
    "too-few-fields": csv(line(rest="1"), "holds 5 fields, for 6 columns of shop.t"),
    "too-many-fields": csv(line(rest='1,"n","AAE=","a","x",1,2,3'), "holds 12 fields"),
    "another-table": csv(line(name='"u","shop"'), "a row of shop.u lies in the directory of shop.t"),
    "another-schema": csv(line(name='"t","other"'), "a row of other.t"),
    "int-is-text": csv(line(rest='"one","n","AAE=","a","x",1'), "column id of shop.t"),
    "int-is-float": csv(line(rest='1.5,"n","AAE=","a","x",1'), "column id of shop.t"),
    "float-is-text": csv(line(rest='1,"n","AAE=","a","x","?"'), "column share of shop.t"),
    "no-base64": csv(line(rest='1,"n","?","a","x",1'), "no base64"),
    "no-member": csv(line(rest='1,"n","AAE=","c","x",1'), "'c' is no member of its ENUM"),
    "no-members": csv(line(rest='1,"n","AAE=","a","x,z",1'), "'z' is no member of its SET"),
    "quote-open": csv('"I","t","shop",5,1,"n\r\n', "no CSV as configured"),
    "quote-inside": csv(line(rest='1,n"n,"AAE=","a","x",1'), "no CSV as configured"),
    "other-delimiter": csv('"I"|"t"|"shop"|5\r\n', "no CSV as configured"),
    "blank-line": csv("\r\n", "begins with ''"),
    "no-utf8": Broken({CSV1: line().encode() + b'"I","t","shop",5,1,"\xff"\r\n'}, "no UTF-8", f"{CSV1}, line 2"),
    "header-without-commit-ts": Broken(
        {CSV1: (HEADER.replace("ticdc-meta$commit-ts,", "") + line()).encode()}, "lack commit-ts", f"{CSV1}, line 1"
    ),
    "header-with-unknown-column": Broken(
        {CSV1: (HEADER.replace("share", "weight") + line()).encode()}, "'weight'", f"{CSV1}, line 1"
    ),
    "header-of-other-order": Broken(
        {CSV1: (HEADER.replace("$operation", "$what") + line()).encode()}, "header begins with", f"{CSV1}, line 1"
    ),
    "truncated": Broken({CSV1: line().encode()[:-9], CSV2: line().encode()}, "ends within a line", f"{CSV1}, line 1"),
    "truncated-at-the-end": Broken(
        {CSV1: line().encode()[:-9]}, "ends within a line", f"{CSV1}, line 1", kind=SourceUnreachableError
    ),
    "empty": Broken({CSV1: b"", CSV2: line().encode()}, "it is empty", CSV1),
    "no-schema-file": Broken({SCHEMA: None}, "rows have no schema file", AT),
    "schema-no-json": Broken({SCHEMA: b"{"}, "a schema file can't be read", SCHEMA),
    "schema-empty": Broken({SCHEMA: b""}, "a schema file can't be read", SCHEMA),
    "schema-without-version": Broken({SCHEMA: schema().replace(b"TableVersion", b"T")}, "can't be read", SCHEMA),
    "schema-of-another-version": Broken({SCHEMA: schema(TableVersion=7)}, "of version 7", SCHEMA),
    "schema-lacks-columns": Broken({SCHEMA: schema(TableColumnsTotal=9)}, "names 6 columns and says 9", SCHEMA),
    "schema-repeats-a-column": Broken(
        {SCHEMA: schema(TableColumns=[*COLUMNS, COLUMNS[0]], TableColumnsTotal=7)}, "names 6 columns", SCHEMA
    ),
    "two-schemas": Broken(
        {SCHEMA.replace("1234567890", "0987654321"): schema(TableColumns=COLUMNS[:1], TableColumnsTotal=1)},
        "two schema files of one version", "shop/t/meta/",
    ),
    "hole": Broken(
        {CSV1.replace("1.csv", "3.csv"): line().encode()}, "number 2 is missing, though number 3 is there", AT,
        kind=SourceUnreachableError,
    ),
    "beginning-gone": Broken({CSV1: None, CSV2: line().encode()}, "file number 1 is gone", AT),
    "json-for-csv": Broken({CSV1: None, JSON1: row()}, "other kind: .json", JSON1),
    "csv-for-json": Broken({}, "other kind: .csv", CSV1, "canal-json"),
    "metadata-no-json": Broken({"metadata": b"{"}, "no checkpoint-ts", "metadata", kind=SourceUnreachableError),
    "metadata-text": Broken({"metadata": b'{"checkpoint-ts":"5"}'}, "is 5, no TSO", "metadata"),
    "metadata-negative": Broken({"metadata": b'{"checkpoint-ts":-5}'}, "is -5, no TSO", "metadata"),
    "line-no-json": lines(b'{"id":\r\n', "no"),
    "line-blank": lines(b"\r\n", "empty (0 bytes)"),
    "line-without-extension": lines(row(_tidb=None), "lacks the TiDB extension"),
    "line-without-commit-ts": lines(row(_tidb={}), "lacks commitTs"),
    "line-of-unknown-type": lines(row(type="UPSERT"), "unknown type"),
    "line-without-data": lines(row(data=None), "exactly one row"),
    "line-without-key": lines(row(data=[{"x": "1"}]), "id", None),
    "line-truncated": Broken(
        {CSV1: None, JSON1: row() + row()[:-20]}, "ends within a line", f"{JSON1}, line 2", "canal-json",
        SourceUnreachableError,
    ),
    "line-truncated-and-no-last": Broken(
        {CSV1: None, JSON1: row() + row()[:-20], JSON1.replace("1.json", "2.json"): row()}, "ends within a line",
        f"{JSON1}, line 2", "canal-json",
    ),
}  # fmt: skip


def config(root: Path, protocol: str) -> Config:
    source = {"storage": f"file://{root}", "protocol": protocol}
    return config_from({"changefeed": "c", "source": source, "target": {"uri": "sqlite:////nowhere"}}, "a test")


def written(root: Path, files: Mapping[str, bytes | None]) -> None:
    for path, content in {**GOOD, **files}.items():
        if content is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)


def read(config: Config) -> tuple[Probe, list[Report]]:
    """Probe, and read all that there is. Raises ReconcilerError."""
    progress = Progress()
    probe = FileSource(config, storage_of(config)).probe(progress)
    high = probe.resolved.ts or ResolvedTs(0)
    window = Window(progress.checkpoint_ts, progress.base_ts, high, high, probe.ranges)
    spec = ReadSpec(window, {}, lambda *_: True, 1, 1 << 20, native=False, format=CanalJson(sends_batches=True))
    found = [payload for _, payload in ReadTask(spec, readers_of(config))([(0, probe.ranges)])]
    for one in found:
        if isinstance(one, ReconcilerError):
            raise one
    reports = [one for one in found if isinstance(one, Report)]
    refused_rows(reports)
    return probe, reports


@pytest.mark.parametrize("name", CASES)
def test_a_broken_file_is_named(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    written(tmp_path, case.files)
    with pytest.raises(case.kind) as caught:
        read(config(tmp_path, case.protocol))
    assert type(caught.value) is case.kind
    assert case.told in caught.value.fact
    assert case.where in caught.value.where


def test_there_are_forty_kinds() -> None:
    assert len(CASES) >= 40


def test_good_files_are_read(tmp_path: Path) -> None:
    written(tmp_path, {})
    probe, reports = read(config(tmp_path, "csv"))
    assert probe.resolved.ts == TS + 5
    assert sum(report.released for report in reports) == 2


def test_index_files_are_not_looked_at(tmp_path: Path) -> None:
    written(tmp_path, {f"{AT}/meta/CDC.index": b"CDC00000000000000000009.csv\n"})
    assert sum(report.released for report in read(config(tmp_path, "csv"))[1]) == 2


def test_without_metadata_nothing_counts(tmp_path: Path) -> None:
    written(tmp_path, {})
    (tmp_path / "metadata").unlink()
    probe = FileSource(config(tmp_path, "csv"), storage_of(config(tmp_path, "csv"))).probe(Progress())
    assert probe.resolved.ts is None
    assert probe.ranges == ()


def test_a_checkpoint_that_goes_back_is_none(tmp_path: Path) -> None:
    written(tmp_path, {})
    source = FileSource(config(tmp_path, "csv"), storage_of(config(tmp_path, "csv")))
    assert source.probe(Progress()).resolved.ts == TS + 5
    (tmp_path / "metadata").write_bytes(b'{"checkpoint-ts":7}')
    assert source.probe(Progress()).resolved.ts == TS + 5


def test_old_series_are_forgotten_once_they_are_applied(tmp_path: Path) -> None:
    written(tmp_path, {})
    found = FileSource(config(tmp_path, "csv"), storage_of(config(tmp_path, "csv"))).probe(Progress())
    (partition,) = [p for p in found.partitions if "/" in p.topic]
    done = {partition: PartitionProgress(2, 2)}
    later = CheckpointTs(int(4e12) << 18)  # in the year 2096: the files were written long before
    progress = Progress(later, later, partitions=done, topics=found.topics)
    again = FileSource(config(tmp_path, "csv"), storage_of(config(tmp_path, "csv"))).probe(progress)
    assert [p.topic for p in again.partitions] == ["metadata"]
    unread = Progress(later, later, partitions={partition: PartitionProgress(1, 2)}, topics=found.topics)
    kept = FileSource(config(tmp_path, "csv"), storage_of(config(tmp_path, "csv"))).probe(unread)
    assert partition in kept.partitions
