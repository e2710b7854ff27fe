"""What the compiled core makes of messages is what Python makes of them: reports, blocks, errors, bytewise."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
import xxhash

from consumer.codec.canal_json import Plain
from consumer.filters.tables import table_filter
from consumer.native import LEFT_OUT, Core, Head, Reading
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.scans.compiled_scan import CompiledReduction, CompiledScan
from ordering.events import Partition, TableName
from ordering.rows.identity import fingerprint, row_key
from ordering.rows.net_effect import NetEffect
from ordering.timestamps import MAX_TSO, CheckpointTs, ResolvedTs
from ordering.window import Range, Window
from tests.bench.load import Load, Mark, watermark
from tests.consumer.native.building import ROOT, built, sanitizer
from tests.consumer.native.fuzz import Case, check, outcome_of
from tests.consumer.native.in_place import FakeShelf
from tests.service.messages import at, encoded, row_value

SECONDS = 3.0
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")


def test_random_cases_agree(core: Core) -> None:
    """As many as fit some seconds, other ones each day: a failure names its seed."""
    first, until = int(time.time() // 86_400) * 10_000_000, time.monotonic() + SECONDS
    rows, cases, shelf = 0, 0, FakeShelf(core)
    while time.monotonic() < until or not rows:
        rows += check(first + cases, core, shelf)
        cases += 1
    assert rows >= cases / 2, "most cases hold nothing that the core could take"


@pytest.mark.soak
def test_ten_million_random_cases_agree(core: Core) -> None:
    shelf = FakeShelf(core)
    for seed in range(10_000_000):
        check(seed, core, shelf)


def sanitized_run(place: Path, cases: int, fuzz: str = "fuzz") -> None:
    """Cases with a core that ends the process at the first byte outside of its bounds, or undefined step."""
    library = built(place, *SANITIZED)
    environment = os.environ | {
        "LD_PRELOAD": str(sanitizer()), "PYTHONMALLOC": "malloc", "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0",
    }  # fmt: skip
    command = [sys.executable, "-m", f"tests.consumer.native.{fuzz}", "--library", str(library), "--cases", str(cases)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-6_000:]


@pytest.mark.by_turns
def test_it_stays_within_its_bounds(tmp_path: Path) -> None:
    sanitized_run(tmp_path, 500)


@pytest.mark.soak
def test_it_stays_within_its_bounds_for_long(tmp_path: Path) -> None:
    sanitized_run(tmp_path, 500_000)


def case_of(messages: list[bytes], *, run: int = 2_000) -> Case:
    """All of these messages, in one window."""
    part = Range(Partition("t", 0), 0, len(messages), 0)
    window = Window(CheckpointTs(0), CheckpointTs(0), ResolvedTs(MAX_TSO), ResolvedTs(MAX_TSO), (part,))
    spec = ReadSpec(window, {}, table_filter(["*.*"]), buckets=8, message_bytes=1 << 20)
    kept = [Plain(offset, value) for offset, value in enumerate(messages)]
    runs = [kept[i : i + run] for i in range(0, len(kept), run)]
    return Case(runs, spec, part, [i % 5 == 4 for i in range(len(runs))])


def test_a_load_agrees(core: Core) -> None:
    case = case_of([watermark(m.ts) if isinstance(m, Mark) else m.value for m in Load(30_000).messages()])
    wanted = outcome_of(case, None)
    assert outcome_of(case, core) == wanted
    assert outcome_of(case, core, FakeShelf(core)) == wanted


class Refusing(CompiledScan):
    """Only what is first of its table and kind may be left to `Scan`."""

    left = 0

    def _release(self, *arguments: object) -> None:
        type(self).left += 1
        super()._release(*arguments)  # type: ignore[arg-type]


def left_to_scan(core: Core, messages: list[bytes]) -> int:
    """How many row events the core did not take."""
    case = case_of(messages)
    Refusing.left = 0
    scan = Refusing(case.spec, case.part, CompiledReduction(case.spec, core))
    for run in case.runs:
        scan.take(run)
    assert scan.finished().released == len(messages)
    return Refusing.left


def test_what_is_usual_is_taken(core: Core) -> None:
    """Else nothing would be gained, and the tests above would tell nothing."""
    rows = [
        row_value("INSERT", f"d.t{n % 3}", at(n + 1), {"id": text, "v": "x", "s": None}, key=key)
        for n, (text, key) in enumerate([("1", ("id",)), ('a"\n\\', ("id",)), ("é中😀", ("id", "v"))] * 20)
    ]
    moves = [
        row_value("UPDATE", "d.t", at(n + 1), {"id": n, "v": n}, {"id": n - n % 2, "v": n}, key=("id",))
        for n in range(20)
    ]
    gone = [row_value("DELETE", "d.t", at(n + 1), {"id": n, "v": n}) for n in range(20)]
    assert left_to_scan(core, [encoded(row) for row in rows]) == 3
    assert left_to_scan(core, [encoded(row) for row in moves]) == 1
    assert left_to_scan(core, [encoded(row) for row in gone]) == 1


@pytest.mark.parametrize("length", [*range(260), 511, 512, 513, 1023, 1024, 1025, 5_000, 70_000])
def test_fingerprints_are_those_of_python(core: Core, length: int) -> None:
    """Through a key of any length: its hash and its MessagePack."""
    key = random.Random(length).randbytes(length).hex()[:length]
    values = [encoded(row_value("INSERT", "d.t", at(n), {"id": text})) for n, text in ((1, "first"), (2, key))]
    report = outcome_of(case_of(values), core).report
    prints, contents = (memoryview(one).cast("Q") for one in (report.fingerprints, report.contents))
    assert prints[1] == fingerprint(row_key(TableName("d", "t"), [key]), at(2) << 1 | 1)
    assert contents[1] == xxhash.xxh3_64_intdigest(b'{"id":"%s"}' % key.encode())


def test_rows_from_elsewhere_are_reduced_alike(core: Core) -> None:
    """As they come from `Scan`: in any order, with one ordinal, images that grow and shrink."""
    chance = random.Random(3)
    case = case_of([])
    compiled, plain = CompiledReduction(case.spec, core), NetEffect()
    for _ in range(60_000):
        key, order = b"k%d" % chance.randrange(200), chance.randrange(2, 500)
        half = (key, order, chance.randbytes(chance.choice((0, 1, 15, 16, 17, 300, 9_000))), chance.randrange(2))
        compiled.add(*half)
        plain.add(*half)
        assert (len(compiled.rows), compiled.rows.bytes_held) == (len(plain.rows), plain.bytes_held)
    halves = [tuple(half) for _, block in compiled.blocks() for half in msgspec.msgpack.decode(block)[2]]
    assert sorted(halves) == sorted(plain.drain())
    assert len(compiled.rows) == 0


def meeting_heads(count: int) -> list[Head]:
    """Tables whose names somebody chose so that all of them meet in one slot, would he know how they are hashed."""
    database, keys, heads, number = b'"a"', b'["id"]', list[Head](), 0
    base = xxhash.xxh3_64_intdigest(database, 0)
    while len(heads) < count:
        table, number = b'"t%d"' % number, number + 1
        if xxhash.xxh3_64_intdigest(keys, xxhash.xxh3_64_intdigest(table, base)) % (2 * count) == 0:
            heads.append(Head(database, table, keys))
    return heads


def learning_s(core: Core, heads: list[Head]) -> float:
    reading, begin = Reading(core, 0, MAX_TSO), time.thread_time()
    assert all(reading.learn(head, b"", (), LEFT_OUT) for head in heads)
    return time.thread_time() - begin


def test_names_chosen_to_meet_cost_no_more_than_others(core: Core) -> None:
    chosen = meeting_heads(1024)
    others = [Head(b'"a"', b'"t%d"' % n, b'["id"]') for n in range(len(chosen))]
    slow, usual = (min(learning_s(core, heads) for _ in range(3)) for heads in (chosen, others))
    assert slow < 10 * usual
