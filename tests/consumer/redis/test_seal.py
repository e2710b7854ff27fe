"""Only what a ledger wrote itself covers anything: whatever a writer of Redis makes up, changes or moves does not."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import msgspec
import numpy as np
import pytest
from redis import Redis
from structlog.testing import capture_logs

from consumer.embedded import RedisServer
from consumer.redis.ledger import Judgement, Ledger
from consumer.redis.seal import Seal, new_key
from consumer.redis.terms import LedgerTerm, Terms, begun
from ordering.timestamps import CheckpointTs

KEY = new_key()
TERMS = (LedgerTerm(0, "first"),)
PRINTS = np.arange(100, 200, dtype=np.uint64)
EVENT = np.array([[150, 150, 5, 0, 0]], dtype=np.uint64)
PROVEN, NOTHING = Judgement(1, 0, ()), Judgement(0, 1, ())


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[Redis]:
    with closing(Redis.from_url(redis_server.uri)) as found:
        found.flushdb()
        yield found


def ledger(server: RedisServer, changefeed: str = "cf", name: str = "id", key: str = KEY) -> Ledger:
    return Ledger(server.uri, changefeed, name, key, TERMS)


def names(changefeed: str = "cf", name: str = "id", window: str = "1-9") -> tuple[str, str]:
    return f"ticdc-reconciler:{changefeed}:{name}:windows", f"ticdc-reconciler:{changefeed}:{name}:window:{window}:0"


def judged(found: Ledger) -> tuple[Judgement, int]:
    """The verdict about the event, and how many warnings there were about it, asked three times."""
    with closing(found), capture_logs() as logs:
        verdicts = [found.judge(EVENT) for _ in range(3)]
    assert verdicts[0] == verdicts[1] == verdicts[2]
    return verdicts[0], len([line for line in logs if "did not write" in line["event"]])


def written(server: RedisServer, client: Redis, changefeed: str = "cf", name: str = "id") -> tuple[bytes, bytes]:
    """The entry and the fingerprints of the window (1, 9] as a ledger writes them."""
    with closing(ledger(server, changefeed, name)) as found:
        found.record(1, 9, PRINTS)
    index, part = names(changefeed, name)
    return client.hget(index, "1-9"), client.get(part)  # type: ignore[return-value]


def test_its_own_entries_count(redis_server: RedisServer, client: Redis) -> None:
    written(redis_server, client)
    assert judged(ledger(redis_server)) == (PROVEN, 0)


@pytest.mark.parametrize("key", [None, "", "0" * 64, "other"])
def test_a_forged_entry(redis_server: RedisServer, client: Redis, key: str | None) -> None:
    """By who knows how it is made, but not the key."""
    data = PRINTS.tobytes()
    made = {"parts": 1, "bytes": len(data)}
    if key is not None:
        seal = Seal(key, "cf", "id")
        prints = seal.of_prints([data])
        made |= {"prints": prints, "term": "first"}  # type: ignore[dict-item]
        made |= {"seal": seal.of_entry(1, 9, len(data), prints, "first")}  # type: ignore[dict-item]
    index, part = names()
    client.hset(index, "1-9", json.dumps(made))
    client.set(part, data)
    assert judged(ledger(redis_server)) == (NOTHING, 1)
    assert judged(ledger(redis_server, key="")) == (NOTHING, 1)  # no key is not the empty key


@pytest.mark.parametrize("change", [*range(0, 800, 97), "short", "long", "empty", "half", "sorted again", "doubled"])
def test_changed_fingerprints(redis_server: RedisServer, client: Redis, change: int | str) -> None:
    _, data = written(redis_server, client)
    others = {
        "short": data[:-8],
        "long": data + data[:8],
        "empty": b"",
        "half": data[: len(data) // 2] + bytes(len(data) // 2),
        "sorted again": PRINTS[::-1].tobytes(),
        "doubled": data[:400] * 2,
    }
    client.set(names()[1], others[change] if isinstance(change, str) else flipped(data, change))
    assert judged(ledger(redis_server)) == (NOTHING, 1)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("name", ["seal", "prints", "bytes", "parts", "term"])
@pytest.mark.parametrize("how", ["cut", "other", "gone", "strange"])
def test_a_changed_entry(redis_server: RedisServer, client: Redis, name: str, how: str) -> None:
    entry, _ = written(redis_server, client)
    told = json.loads(entry)
    value = told.pop(name)
    if how != "gone":
        text = isinstance(value, str)
        told[name] = {"cut": value[:-1] if text else 0, "other": "0" * 32 if text else 8, "strange": "\ud800é"}[how]
    client.hset(names()[0], "1-9", json.dumps(told))
    assert judged(ledger(redis_server)) == (NOTHING, 1)


@pytest.mark.parametrize("window", ["0-9", "1-5", "1-10", "4-6", "0-9223372036854775806"])
def test_moved_to_another_window(redis_server: RedisServer, client: Redis, window: str) -> None:
    entry, data = written(redis_server, client)
    index, part = names(window=window)
    client.delete(*names())
    client.hset(index, window, entry)
    client.set(part, data)
    assert judged(ledger(redis_server)) == (NOTHING, 1)


@pytest.mark.parametrize(("changefeed", "name"), [("other", "id"), ("cf", "other"), ("cf:id", ""), ("c", "f:id")])
def test_moved_from_another_changefeed(redis_server: RedisServer, client: Redis, changefeed: str, name: str) -> None:
    """Also where both have the same key, as two changefeeds of one restored target could."""
    entry, data = written(redis_server, client, changefeed, name)
    index, part = names()
    client.hset(index, "1-9", entry)
    client.set(part, data)
    assert judged(ledger(redis_server)) == (NOTHING, 1)


def test_the_fingerprints_of_another_window(redis_server: RedisServer, client: Redis) -> None:
    with closing(ledger(redis_server)) as found:
        found.record(1, 9, PRINTS + np.uint64(500))
        found.record(20, 30, np.arange(10_000, 30_000, dtype=np.uint64))
        found.record(40, 50, PRINTS)
    client.set(names()[1], client.get(names(window="40-50")[1]))  # type: ignore[arg-type]
    assert judged(ledger(redis_server)) == (NOTHING, 1)


def after(*begins: int) -> Terms:
    """The terms of a target whose processes began at these checkpoints, behind the first one."""
    terms: Terms = TERMS
    for begin in begins:
        terms = begun(terms, CheckpointTs(begin), f"of {begin}")
    return terms


def of_terms(server: RedisServer, terms: Terms) -> Ledger:
    return Ledger(server.uri, "cf", "id", KEY, terms)


def test_a_window_above_the_checkpoint_of_a_target_that_was_restored(redis_server: RedisServer, client: Redis) -> None:
    written(redis_server, client)
    with capture_logs() as logs, closing(of_terms(redis_server, after(8))) as restored:
        assert [restored.judge(EVENT) for _ in range(2)] == [NOTHING] * 2
        restored.record(8, 12, PRINTS)
        assert restored.judge(EVENT) == NOTHING
        restored.record(1, 9, PRINTS)
        assert restored.judge(EVENT) == PROVEN
    assert ["went on further" in line["event"] for line in logs] == [True, True]  # once a window
    with closing(of_terms(redis_server, after(8, 9))) as next_one:
        assert next_one.judge(EVENT) == PROVEN


@pytest.mark.parametrize("later", [(), (9,), (9, 40), (20, 30, 40), (9, *range(20, 200))])
def test_put_back_from_the_time_before_the_restore(
    redis_server: RedisServer, client: Redis, later: tuple[int, ...]
) -> None:
    """The same window of another past: genuine, with fingerprints of rows that were not applied since the restore.

    However often the reconciler was started since then.
    """
    entry, data = written(redis_server, client)
    with closing(of_terms(redis_server, after(1))) as restored:
        restored.record(1, 9, PRINTS + np.uint64(500))
        assert restored.judge(EVENT) == Judgement(0, 0, (0,))
    index, part = names()
    client.hset(index, "1-9", entry)
    client.set(part, data)
    with closing(of_terms(redis_server, after(1, *later))) as last:
        assert last.judge(EVENT) == NOTHING


def test_put_back_after_the_progress_was_made_anew(redis_server: RedisServer, client: Redis) -> None:
    """`progress reset` and `rewind` give the ledger another name and another key; an import another key."""
    entry, data = written(redis_server, client)
    for name in ("id", "again"):
        index, part = names(name=name)
        client.hset(index, "1-9", entry)
        client.set(part, data)
        assert judged(ledger(redis_server, name=name, key=new_key())) == (NOTHING, 1)


def test_what_is_of_others_is_removed_and_pushes_nothing_out(redis_server: RedisServer, client: Redis) -> None:
    entry, _ = written(redis_server, client)
    huge = {"parts": 512, "bytes": 1 << 29, "prints": "0" * 32, "term": "", "seal": "0" * 32}
    client.hset(names()[0], mapping={f"{i}-{i + 9}": json.dumps(huge) for i in range(100, 3000)})
    with closing(ledger(redis_server)) as found, capture_logs() as logs:
        found.record(5000, 5001, PRINTS)
        assert found.judge(EVENT) == PROVEN
    assert client.hgetall(names()[0]).keys() == {b"1-9", b"5000-5001"}  # type: ignore[union-attr]
    assert client.hget(names()[0], "1-9") == entry
    assert len(logs) == 1


def test_it_is_said_once_a_window(redis_server: RedisServer, client: Redis) -> None:
    with closing(ledger(redis_server)) as found, capture_logs() as logs:
        for high in (9, 19):
            found.record(high - 8, high, PRINTS)
            client.hset(names()[0], f"x{high}", b"x")
            for _ in range(5):
                found.judge(EVENT)
    assert len(logs) == 2


def test_the_key_is_in_no_text(redis_server: RedisServer, client: Redis) -> None:
    found = ledger(redis_server)
    entry, data = written(redis_server, client)
    assert KEY not in repr(found._seal)
    assert KEY.encode() not in entry + data
    assert msgspec.json.decode(entry)["seal"] not in KEY
    found.close()


def test_sealing_costs_little() -> None:
    """Of a million events, beside bringing their fingerprints into order, in the same process."""
    prints = np.random.default_rng(1).integers(0, 2**63, 1_000_000, dtype=np.uint64)

    def seconds(work: Callable[[], object]) -> float:
        began = time.thread_time()
        work()
        return time.thread_time() - began

    sorting = min(seconds(lambda: np.sort(prints)) for _ in range(3))
    assert min(seconds(lambda: Seal(KEY, "cf", "id").of_prints([prints.data])) for _ in range(3)) < 3 * sorting
