"""What the compiled core makes of CSV files is what Python makes of them: events, their lines and errors, bytewise."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from consumer import native
from consumer.codec.canal_json import Plain
from consumer.filters.tables import table_filter
from consumer.formats.canal_json import CanalJson
from consumer.native import Core
from consumer.storage.csv_file import CsvRules, CsvTable
from consumer.storage.csv_lines import CsvFile
from consumer.storage.layout import METADATA
from consumer.storage.line_run import LineRun, lines_joined
from consumer.storage.place import StorageRoot
from consumer.storage.reader import FileReaders
from consumer.storage.schema_file import FileColumn, TableFile
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.reduction import Reduction
from consumer.tasks.scans.compiled_scan import CompiledReduction, CompiledScan
from consumer.tasks.scans.scan import Scan
from ordering.errors import CoreError, InputError
from ordering.events import Partition
from ordering.timestamps import MAX_TSO, CheckpointTs, ResolvedTs
from ordering.window import Range, Window
from tests.consumer.native.building import built
from tests.consumer.native.csv_fuzz import Case, check, found_by, told
from tests.consumer.native.test_core_equal import sanitized_run
from tests.storage_files import schema_column, write

SECONDS = 3.0
COLUMNS = (
    FileColumn("id", "INT", "true"), FileColumn("v", "VARCHAR"), FileColumn("e", "ENUM", members=("a", "b")),
    FileColumn("s", "SET", members=("x", "y")), FileColumn("f", "DOUBLE"),
)  # fmt: skip
TABLE = TableFile("t", "d", 5, columns=COLUMNS, total=len(COLUMNS))
LINE = '"I","t","d",9,1,"say ""x""\r\n","b","x,y",1.5\r\n'


def test_random_files_agree(core: Core) -> None:
    """As many as fit some seconds, other ones each day: a failure names its seed."""
    first, until = int(time.time() // 86_400) * 10_000_000, time.monotonic() + SECONDS
    events = cases = 0
    while time.monotonic() < until or not events:
        events += check(first + cases, core)
        cases += 1
    assert events >= cases, "most cases hold nothing that the core could take"


@pytest.mark.soak
def test_three_million_random_files_agree(core: Core) -> None:
    for seed in range(3_000_000):
        check(seed, core)


@pytest.mark.by_turns
def test_it_stays_within_its_bounds(tmp_path: Path) -> None:
    sanitized_run(tmp_path, 500, "csv_fuzz")


@pytest.mark.soak
def test_it_stays_within_its_bounds_for_long(tmp_path: Path) -> None:
    sanitized_run(tmp_path, 500_000, "csv_fuzz")


def runs_of(text: str, core: Core, *, rules: CsvRules | None = None, table: TableFile = TABLE) -> list[int]:
    """How many events came in each run; what they are is compared with Python's."""
    case = Case(text.encode(), table, rules or CsvRules())
    outcome, _ = found_by(case, core)
    assert outcome == told(case)
    return [len(one.lens) for one in CsvFile(case.content, CsvTable(table, case.rules), case.rules, core).runs()]


@pytest.mark.parametrize(
    "lines",
    [
        LINE * 3,
        '"U","t","d",9,1,"é中😀",\\N,"",-3\n"D","t","d",9,2,"","a","y",0\r\n' * 2,
        '"D","t","d",9,true,1,"a","a","x",1\r\n"I","t","d",9,true,1,"b","a","x",1\r\n' * 3,
        '"I","t","d",9,false,1,"a","a","x",1\r\n' * 3,
    ],
)
def test_what_is_usual_is_taken_at_once(core: Core, lines: str) -> None:
    """Else nothing would be gained, and the tests above would tell nothing."""
    events = sum(1 for found in told(Case(lines.encode(), TABLE, CsvRules())).events if found)
    assert runs_of(lines, core) == [events]


def test_a_header_is_left_to_python_and_what_follows_is_not(core: Core) -> None:
    meta = ",".join(f"ticdc-meta${name}" for name in ("operation", "table", "schema", "commit-ts"))
    assert runs_of(f"{meta},id,v,e,s,f\r\n" + LINE * 4, core) == [4]


def test_after_an_unusual_line_the_core_goes_on(core: Core) -> None:
    odd = '"I","t","d",9,1,"a","a","x",1e5\r\n'
    assert runs_of(LINE * 3 + odd + LINE * 3, core) == [3, 1, 3]
    assert runs_of((LINE + odd) * 4 + odd * 9 + LINE * 40, core)[-1] > 20


def test_lines_after_texts_with_line_ends_have_their_numbers(core: Core) -> None:
    text = LINE + '"I","t","d",9,1,"é\n\n","a","x",1e5\n' + LINE * 2
    assert [number for number, _ in found_by(Case(text.encode(), TABLE, CsvRules()), core)[0].events] == [1, 3, 6, 8]


def test_a_table_with_binary_columns_is_left_to_python(core: Core) -> None:
    table = TableFile("t", "d", 5, columns=(*COLUMNS, FileColumn("b", "BLOB")), total=len(COLUMNS) + 1)
    assert runs_of('"I","t","d",9,1,"a","a","x",1,"AAE="\r\n' * 3, core, table=table) == [3]
    broken = '"I","t","d",9,1,"a","a","x",1,"AA"\r\n'
    with pytest.raises(InputError, match="no base64"):
        list(CsvFile(broken.encode(), CsvTable(table, CsvRules()), CsvRules(), core).runs())


def event(kind: str, commit_ts: int, row: dict[str, Any]) -> bytes:
    head = '{"database":"d","table":"t","pkNames":["id"],"isDdl":false,"sql":"","mysqlType":{"id":"int","v":"text"}'
    old, more = ("[{}]", ',"onlyNew":true') if kind == "UPDATE" else ("null", "")
    tail = f'"data":[{json.dumps(row, separators=(",", ":"))}],"_tidb":{{"commitTs":{commit_ts}{more}}}}}'
    return f'{head},"type":"{kind}","old":{old},{tail}'.encode()


@pytest.mark.parametrize("counted_to", [0, 3, 4])
def test_lines_of_a_file_are_scanned_as_messages_are(core: Core, counted_to: int) -> None:
    """Also where the file counts as read before, and where one of its lines is not usual."""
    part = Range(Partition("files=d/t/CDC", 0), 3, 4, counted_to)
    window = Window(CheckpointTs(2), CheckpointTs(2), ResolvedTs(MAX_TSO), ResolvedTs(MAX_TSO), (part,))
    spec = ReadSpec(window, {}, table_filter(["*.*"]), 4, 1 << 20, format=CanalJson(sends_batches=True))
    kinds = ["INSERT", "UPDATE", "UPDATE", "DELETE", "INSERT"] * 3
    events = [event(kind, n + 1, {"id": str(n % 4), "v": "x"}) for n, kind in enumerate(kinds)]
    events[7] = events[7].replace(b'"isDdl":false', b'"isDdl" : false')
    compiled, plain = CompiledReduction(spec, core), Reduction(spec)
    taken = CompiledScan(spec, part, compiled)
    run = LineRun(lines_joined(events, range(1, len(events) + 1)), 3, "file")
    assert taken.take(run[:9])
    assert taken.take(run[9:])
    scanned = Scan(spec, part, plain)
    assert scanned.take([Plain(3, value) for value in events])
    assert taken.finished() == scanned.finished()
    assert list(compiled.blocks()) == list(plain.blocks())
    assert [message.value() for message in run[2:5]] == events[2:5]


def test_updates_without_their_old_row_are_taken(core: Core) -> None:
    """As most formats but Canal-JSON itself have them."""
    run = LineRun(lines_joined([event("UPDATE", n, {"id": "1", "v": "x"}) for n in range(1, 9)], range(8)), 1, "file")
    part = Range(Partition("f", 0), 1, 2, 1)
    window = Window(CheckpointTs(0), CheckpointTs(0), ResolvedTs(MAX_TSO), ResolvedTs(MAX_TSO), (part,))
    spec = ReadSpec(window, {}, table_filter(["*.*"]), 4, 1 << 20, format=CanalJson(sends_batches=True))
    scan = CompiledScan(spec, part, CompiledReduction(spec, core))
    left = []
    scan._release = lambda *told: (left.append(told[0]), Scan._release(scan, *told))[1]  # type: ignore[method-assign]
    assert scan.take(run)
    assert len(left) == 1, "only the first row tells of its table"


@pytest.mark.by_turns
def test_a_crash_is_an_error_that_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native._State, "crashed", False)
    line = b'"I","t","d",9,1,"x"\r\n'
    monkeypatch.setattr(native, "LIBRARY", built(tmp_path, f"-DCORE_FAULT={len(line)}"))
    columns = [schema_column("id", "int", is_key=True), schema_column("v", "varchar", is_key=False)]
    schema = {"Table": "t", "Schema": "d", "Version": 1, "TableVersion": 5, "Query": "", "Type": 0}
    schema |= {"TableColumns": columns, "TableColumnsTotal": len(columns)}
    path = "d/t/5/2026-01-01/CDC00000000000000000001.csv"
    files = {METADATA: b'{"checkpoint-ts":9}', "d/t/meta/schema_5_1.json": json.dumps(schema).encode()}
    write({**files, path: line}, tmp_path / "files")
    root = StorageRoot(f"file://{tmp_path}/files")
    span = (Partition("d/t/5/2026-01-01/CDC", 0), 1, 2)
    with pytest.raises(CoreError, match="crashed") as caught:
        list(FileReaders(root, CsvRules()).get().read([span]))
    assert caught.value.where.endswith(path)
    assert "spark.native" in caught.value.hint
    assert len(list(FileReaders(root, CsvRules(), native=False).get().read([span]))) == 1
