"""The ledger's cap holds in total, whatever processes wrote it, and what others wrote into Redis covers nothing."""

import numpy as np
from redis import Redis

from consumer.embedded import RedisServer
from consumer.redis.ledger import Ledger
from consumer.redis.ledger_sizes import LedgerSizes
from consumer.redis.terms import LedgerTerm

_CAP = 1 << 16
SIZES = LedgerSizes(kept_bytes=_CAP)
_ROWS = 2_000
TERMS = (LedgerTerm(0, "first"),)


def held(client: Redis, identity: str) -> int:
    return sum(client.strlen(key) for key in client.keys(f"*{identity}:window:*"))


def test_many_short_runs_keep_the_cap(redis_server: RedisServer) -> None:
    client = Redis.from_url(redis_server.uri)
    for run in range(20):
        each = Ledger(redis_server.uri, "cron", "cap", "key", TERMS, sizes=SIZES)  # a process of its own
        each.record(run, run + 1, np.arange(_ROWS, dtype=np.uint64) + np.uint64(run * _ROWS))
        each.close()
        assert held(client, "cap") <= _CAP
    assert held(client, "cap") > _CAP // 2
    client.close()


def test_what_is_no_entry_covers_nothing(redis_server: RedisServer) -> None:
    own = Ledger(redis_server.uri, "cron", "strange", "key", TERMS)
    own.record(1, 2, np.arange(9, dtype=np.uint64))
    client = Redis.from_url(redis_server.uri)
    index = "ticdc-reconciler:cron:strange:windows"
    strange = {
        "x": "{}",
        "3-4": "no json",
        "5-6": '{"parts": 1000000000, "bytes": 8}',
        "7-8": '{"parts": 1, "bytes": -8}',
    }
    client.hset(index, mapping=strange)
    events = np.array([[99, 99, ts, 0, 0] for ts in (4, 6, 8)], dtype=np.uint64)
    found = own.judge(events)
    assert (found.proven, found.unproven, found.late) == (0, 3, ())
    own.close()
    client.close()
