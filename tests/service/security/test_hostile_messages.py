"""Messages that nobody sends: foreseen errors with their position, bounded memory, and nothing lost by them.

`test_mutated_*` take genuine messages and make them wrong at random; the seed is in the failure.
"""

import json
import random
import resource
from pathlib import Path

import cramjam
import pytest

from consumer.codec.canal_json import Plain
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.reduction import Reduction
from consumer.tasks.report import Report
from consumer.tasks.scans.scan import Scan
from ordering.errors import InputError, ReconcilerError
from ordering.events import Partition
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Range, Window
from tests.service.cells import SqliteCells, differences, oracle
from tests.service.lab import recorded
from tests.service.local import LocalFeed
from tests.service.messages import TOPIC, at, begun, encoded, insert, keyed, row_value, value_of, watermarks
from tests.service.mutations import mutated, plain

Message = type(insert("d.t", 1))
LIMIT = 1 << 20
DEEP = 200_000
_WINDOW = Window(CheckpointTs(0), CheckpointTs(0), ResolvedTs(2**62), ResolvedTs(2**62))
RECORDINGS = (
    "bank.index-value.raw", "types.table", "nokey.plain", "ddl-changes.index-value", "split.ts.raw", "names.table",
    "keys.index-value.split", "filters.plain", "large.claim-check.raw", "odd-keys.index-value.raw", "split.lz4.split",
)  # fmt: skip


def scanned(value: bytes | None, *, force_replicate: bool) -> Report:
    """What a task makes of one message at offset 5. Raises what it raises."""
    spec = ReadSpec(_WINDOW, {}, lambda _d, _t: True, 4, LIMIT, force_replicate=force_replicate)
    reduction = Reduction(spec)
    scan = Scan(spec, Range(Partition("t", 0), 5, 6, 5), reduction)
    scan.take([Plain(5, value)])
    list(reduction.blocks())
    return scan.finished()


def test_mutated_messages_are_read_or_refused() -> None:
    """Whatever is done to a message: a report, or an InputError with its position."""
    check_mutations(range(3_000))


@pytest.mark.soak
def test_many_mutated_messages_are_read_or_refused() -> None:
    check_mutations(range(3_000, 600_000))


def check_mutations(seeds: range) -> None:
    genuine = [message.value for name in RECORDINGS for message in recorded(name)]
    refused = 0
    for seed in seeds:
        chance = random.Random(seed)
        value = mutated(chance.choice(genuine), chance)
        for force_replicate in (False, True):
            refused += is_refused(value, seed, force_replicate=force_replicate)
    assert len(seeds) / 2 < refused < 2 * len(seeds)


def is_refused(value: bytes, seed: int, *, force_replicate: bool) -> bool:
    """Whether it is, with its position. Fails for any other end."""
    try:
        scanned(value, force_replicate=force_replicate)
    except InputError as error:
        if "topic=t partition=0 offset=5" in error.where:
            return True
        raise AssertionError(f"seed {seed}: no position") from error
    except Exception as error:
        raise AssertionError(f"seed {seed}: {value[:300]!r}") from error
    return False


STORIES = ("iv.index-value.raw", "unique-swaps.index-value.raw", "split.lz4.split", "keys.index-value.split")


@pytest.mark.service
def test_mutated_histories_lose_nothing(tmp_path: Path) -> None:
    """A message is refused, its genuine one is put in its place, and the run ends as if nothing had been."""
    check_histories(range(25), tmp_path)


@pytest.mark.service
@pytest.mark.soak
def test_many_mutated_histories_lose_nothing(tmp_path: Path) -> None:
    check_histories(range(25, 5_000), tmp_path)


def check_histories(seeds: range, place: Path) -> None:
    stories = {name: recorded(name) for name in STORIES}
    healed = 0
    for seed in seeds:
        chance = random.Random(seed)
        name = chance.choice(STORIES)
        at_fault = chance.randrange(len(stories[name]))
        genuine = stories[name][at_fault]
        wrong = mutated(genuine.value, chance)
        feed = local_feed(place / str(seed))
        feed.with_(target={"consistency": chance.choice(["snapshot", "transaction"])})
        feed.send([*stories[name][:at_fault], genuine._replace(value=wrong), *stories[name][at_fault + 1 :]])
        error = refusal(feed, seed)
        if isinstance(error, InputError):
            for held in feed.log_of_messages.held.values():
                held[:] = [genuine.value if value == wrong else value for value in held]
            assert "partition=" in str(error), (seed, error)
            feed.apply()
            assert differences(oracle(name.split(".")[0]), feed.cells) == [], seed
            healed += 1
    assert healed > len(seeds) / 4


def refusal(feed: LocalFeed, seed: int = -1) -> ReconcilerError | None:
    """What ends the run, if anything foreseen does."""
    try:
        feed.apply()
    except ReconcilerError as error:
        if error.exit_code in (3, 4):
            return error
        raise AssertionError(f"seed {seed}: exit code {error.exit_code}") from error
    except Exception as error:
        raise AssertionError(f"seed {seed}") from error
    return None


def local_feed(place: Path) -> LocalFeed:
    target = place / "target"
    feed = LocalFeed(None, "nowhere:1", TOPIC, f"sqlite:///{target}", SqliteCells(target), place)  # type: ignore[arg-type]
    return feed.with_(limits={"message-bytes": "2MiB"})


ROW = encoded(row_value("INSERT", "d.t", at(5), {"id": 7, "v": 1, "s": "x"}))
NESTED = b"[" * DEEP + b"]" * DEEP
OBJECTS = b'{"a":' * DEEP + b"1" + b"}" * DEEP
MARK = json.dumps(value_of("TIDB_WATERMARK", "", at(5))).encode()
WRONG = {
    "deep-beside": (ROW[:-1] + b',"x":' + NESTED + b"}", "nested"),
    "deep-objects": (ROW[:-1] + b',"x":' + OBJECTS + b"}", "nested"),
    "deep-row": (ROW.replace(b'[{"id"', b"[" + NESTED + b',{"id"'), "nested"),
    "deep-value": (ROW.replace(b'"x"', NESTED), "nested"),
    "deep-and-open": (b'{"type":' + b"[" * DEEP, "Canal-JSON"),
    "huge-commit-ts": (ROW.replace(str(at(5)).encode(), b"9" * 30), "Canal-JSON"),
    "commit-ts-beyond-64-bits-signed": (ROW.replace(str(at(5)).encode(), str(2**63).encode()), "Canal-JSON"),
    "a-million-digits": (ROW.replace(str(at(5)).encode(), b"9" * 1_000_000), "Canal-JSON"),
    "negative-commit-ts": (ROW.replace(str(at(5)).encode(), b"-5"), "Canal-JSON"),
    "fraction": (ROW.replace(str(at(5)).encode(), b"1.5"), "Canal-JSON"),
    "huge-watermark": (MARK.replace(b'"commitTs": ' + str(at(5)).encode(), b'"watermarkTs": ' + b"9" * 30), "Canal"),
    "bytes-that-are-no-text": (ROW.replace(b'"x"', b'"\xff\xfe"'), "utf-8"),
    "bytes-in-the-key": (ROW.replace(b'"id":"7"', b'"id":"\xff"'), "utf-8"),
    "half-a-surrogate": (ROW.replace(b'"x"', b'"\\ud83d"'), "malformed"),
    "number-for-a-text": (ROW.replace(b'"x"', b"12"), "Expected `str | null`"),
    "object-for-a-text": (ROW.replace(b'"x"', b"{}"), "Expected `str | null`"),
    "key-named-twice": (ROW.replace(b'["id"]', b'["id","id"]'), "key columns"),
    "hundred-key-columns": (ROW.replace(b'["id"]', json.dumps([str(n) for n in range(100)]).encode()), "key columns"),
    "nul-in-a-name": (ROW.replace(b'"table":"t"', b'"table":"t\\u0000x"'), "U+0000"),
    "larger-than-the-limit": (ROW.replace(b'"x"', b'"' + b"y" * (2 << 20) + b'"'), "limits.message-bytes"),
    "no-json-and-larger": (b"x" * (3 << 20), "limits.message-bytes"),
    "lz4-bomb": (bytes(cramjam.lz4.compress(ROW + b" " * (64 << 20))), "limits.message-bytes"),
    "snappy-bomb": (bytes(cramjam.snappy.compress_raw(ROW + b" " * (8 << 20))), "limits.message-bytes"),
    "snappy-that-promises-much": (b"\xff\xff\xff\xff\x0f" + b"a" * 50, "limits.message-bytes"),
    "lz4-of-nothing": (b"\x04\x22\x4d\x18", "decompressed"),
    "lz4-in-lz4": (bytes(cramjam.lz4.compress(bytes(cramjam.lz4.compress(ROW)))), "JSON"),
}


@pytest.mark.service
@pytest.mark.parametrize("case", sorted(WRONG))
def test_wrong_messages(case: str, tmp_path: Path) -> None:
    value, told = WRONG[case]
    feed = local_feed(tmp_path)
    feed.send([*begun(), Message(TOPIC, 1, value), *watermarks(6)])
    error = refusal(feed)
    assert isinstance(error, InputError)
    assert error.exit_code == 3
    assert told in str(error)
    assert f"topic={TOPIC} partition=1 offset=1" in str(error)
    assert len(str(error)) < 1_000
    assert rows_of(feed) == []
    for held in feed.log_of_messages.held.values():
        held[:] = [ROW if one == value else one for one in held]
    feed.apply()
    assert [row["id"] for row in rows_of(feed)] == [1, 7]


def rows_of(feed: LocalFeed) -> list[dict[str, object]]:
    found = feed.cells.tables(["d"]).get("d.t", ([], []))[1]
    return sorted(found, key=lambda row: str(row["id"]))


@pytest.mark.by_turns
@pytest.mark.service
def test_a_million_columns(tmp_path: Path) -> None:
    """Refused by their names, with the memory of the message, not of a million objects each."""
    feed = local_feed(tmp_path).with_(limits={"message-bytes": "64MiB"})
    wide = {"id": 7, **{f"c{number}": 1 for number in range(1_000_000)}}
    feed.send([*begun(), keyed(insert("d.t", 5, **wide), "id"), *watermarks(6)])  # type: ignore[arg-type]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = refusal(feed)
    assert error is not None
    assert "offset=4" in str(error)
    assert len(str(error)) < 5_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB
    assert rows_of(feed) == []


@pytest.mark.service
def test_of_a_name_that_comes_twice_the_last_counts(tmp_path: Path) -> None:
    """As in Go's JSON, and for keys and rows alike."""
    twice = ROW.replace(b'"id":"7"', b'"id":"5","id":"7"').replace(b'"v":"1"', b'"v":"3","v":"1"')
    feed = local_feed(tmp_path)
    feed.send([*begun(), Message(TOPIC, 1, twice), *watermarks(6)])
    feed.apply()
    assert rows_of(feed)[1] == {"id": 7, "v": 1, "s": "x"}


def test_mutations_are_many() -> None:
    """The mutator does what it says: few messages stay what they were."""
    genuine = [message.value for message in recorded("iv.index-value.raw")]
    same = sum(
        mutated(genuine[n % len(genuine)], random.Random(n)) == plain(genuine[n % len(genuine)]) for n in range(500)
    )
    assert same < 50
