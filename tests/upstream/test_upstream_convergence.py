"""Whatever the changefeed does on the way, its messages lead to what the upstream held."""

import random
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from upstream_applier import Tables, apply_transaction, content, decoded, full_name, is_row, row_transactions

from consumer.demo.fake_ticdc.bank import Bank
from consumer.demo.fake_ticdc.changefeed import Changefeed, Message
from consumer.demo.fake_ticdc.database import Database, DatabaseState, Executed
from consumer.demo.fake_ticdc.oracle import snapshot_at, snapshots

KEYS = {"acc2": ["no"], "acc6": ["no"]}

FEEDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "raw": {"raw": True},
    "table": {"dispatcher": "table"},
    "default-raw": {"dispatcher": "default", "raw": True},
    "ts": {"dispatcher": "ts", "partitions": 4},
    "columns-raw": {"dispatcher": "columns", "columns": ("bal",), "raw": True},
    "columns-missing": {"dispatcher": "columns", "columns": ("nowhere",)},
    "one-partition": {"partitions": 1},
    "unshuffled": {"shuffle": False},
    "topic-a-table": {"topic": "cdc_{schema}_{table}"},
    "only-updated-columns": {"only_updated_columns": True, "raw": True},
    "only-ddl-watermarks": {"watermark_every": 0},
    "no-watermark-before-ddl": {"watermark_before_ddl": False, "topic": "cdc_{schema}_{table}"},
    "restarts": {"restart_every": 3, "restart_back": 2},
    "duplicates": {"duplicates": 0.3},
    "full-replay": {"full_replays": 1},
    "all-at-once": {
        "topic": "cdc_{schema}_{table}",
        "restart_every": 2,
        "restart_back": 3,
        "duplicates": 0.2,
        "full_replays": 1,
        "watermark_every": 3,
        "raw": True,
    },
}


def converged(messages: list[Message], database: Database) -> None:
    """Apply rows from the messages and DDLs from the log; compare after every commit."""
    found, state = row_transactions(decoded(messages)), DatabaseState()
    tables: Tables = defaultdict(dict)
    state.rows = tables
    commits = {entry.commit_ts: entry for entry in database.log}
    assert set(found) <= set(commits)
    for ts, expected in snapshots(database.log):
        entry = commits[ts]
        if isinstance(entry, Executed):
            entry.ddl.apply(state)
        apply_transaction(tables, found.get(ts, []), KEYS)
        assert tables == expected, ts
    assert tables == database.snapshot()


@pytest.mark.parametrize("name", FEEDS)
@pytest.mark.parametrize("ddl", [0.0, 0.3])
def test_every_upstream_state_is_in_the_messages(name: str, ddl: float) -> None:
    for seed in range(8):
        bank = Bank(seed, accounts=5, ddl=ddl).run(25)
        feed = Changefeed(seed=seed, **FEEDS[name])
        converged(list(feed.messages(bank.database.log)), bank.database)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    dispatcher=st.sampled_from(["index-value", "table", "ts", "columns", "default"]),
    topic=st.sampled_from(["ticdc", "cdc_{schema}_{table}", "of_{schema}"]),
    raw=st.booleans(),
    partitions=st.integers(1, 5),
    watermark_every=st.integers(0, 6),
    restart_every=st.integers(0, 4),
    restart_back=st.integers(0, 4),
    duplicates=st.sampled_from([0.0, 0.2]),
    ddl=st.sampled_from([0.0, 0.2]),
)
def test_any_changefeed_converges(seed: int, ddl: float, **options: Any) -> None:
    bank = Bank(seed, accounts=4, tables=3 + seed % 5, ddl=ddl).run(15)
    converged(list(Changefeed(seed=seed, **options).messages(bank.database.log)), bank.database)


def test_the_same_seed_gives_the_same_bytes() -> None:
    def made() -> list[Message]:
        log = Bank(3, ddl=0.2).run(30).database.log
        return list(Changefeed(seed=5, duplicates=0.1, restart_every=2).messages(log))

    assert made() == made()


def test_an_account_that_comes_back_has_no_other_s_tag() -> None:
    Bank(510434, accounts=4, tables=4).run(30)


def test_a_snapshot_in_the_past_is_what_the_database_held_then() -> None:
    bank = Bank(4, ddl=0.2)
    seen = []
    for _ in range(30):
        bank.run(1)
        seen.append((bank.database.log[-1].commit_ts, bank.database.snapshot()))
    for ts, snapshot in seen:
        assert snapshot_at(bank.database.log, ts) == snapshot


def test_a_changefeed_that_starts_later_sends_only_what_came_later() -> None:
    bank = Bank(6, ddl=0.2).run(10)
    start = bank.database.log[-1].commit_ts
    bank.run(20)
    values = decoded(Changefeed(start_ts=start).messages(bank.database.log))
    whole = decoded(Changefeed().messages(bank.database.log))
    late = [value for value in whole if is_row(value) and value["_tidb"]["commitTs"] > start]
    assert sorted(map(repr, map(content, filter(is_row, values)))) == sorted(map(repr, map(content, late)))
    assert all(value["_tidb"].get("commitTs", start + 1) > start for value in values)


def test_deletes_can_be_reduced_to_the_handle_key() -> None:
    values = decoded(Changefeed(delete_only_handle_key=True).messages(Bank(7).run(40).database.log))
    deleted = [value for value in values if value["type"] == "DELETE"]
    assert deleted
    for value in deleted:
        key = value["pkNames"] or KEYS[value["table"]]
        assert list(value["data"][0]) == list(value["sqlType"]) == key
    assert all(len(value["data"][0]) > 1 for value in values if value["type"] == "INSERT")


def test_restarts_repeat_and_duplicates_are_exact() -> None:
    log = Bank(8).run(60).database.log
    plain = list(Changefeed().messages(log))
    echoed = list(Changefeed(duplicates=0.2).messages(log))
    assert len(plain) * 1.1 < len(echoed) < len(plain) * 1.3
    assert len(set(echoed)) == len(set(plain))
    restarted = decoded(Changefeed(restart_every=3).messages(log))
    watermarks = [value["_tidb"]["watermarkTs"] for value in restarted if value["type"] == "TIDB_WATERMARK"]
    assert watermarks != sorted(watermarks)
    copies = defaultdict(set)
    for value in filter(is_row, restarted):
        copies[content(value)].add(value["ts"])
    assert max(map(len, copies.values())) > 1


def test_tables_interleave_but_each_keeps_its_order() -> None:
    for seed in range(10):
        values = decoded(
            Changefeed(seed=seed, partitions=1, watermark_every=10).messages(Bank(seed).run(40).database.log)
        )
        rows = list(filter(is_row, values))
        commits = [value["_tidb"]["commitTs"] for value in rows]
        assert commits != sorted(commits)
        for table in {full_name(value) for value in rows}:
            order = [
                (value["_tidb"]["commitTs"], ["DELETE", "UPDATE", "INSERT"].index(value["type"]))
                for value in rows
                if full_name(value) == table
            ]
            assert order == sorted(order)


def test_the_balances_add_up_at_every_commit() -> None:
    for seed in range(10):
        bank = Bank(seed, accounts=6, tables=random.Random(seed).randrange(3, 6), ddl=0.1).run(40)
        sums = [(ts, Bank.balance(tables)) for ts, tables in snapshots(bank.database.log) if ts >= bank.opened_ts]
        assert len(sums) > 40
        assert {total for _, total in sums} == {bank.total}


def test_an_endless_bank_gives_the_same_history() -> None:
    endless = Bank(9, ddl=0.1).entries()
    expected = Bank(9, ddl=0.1).run(30).database.log
    assert [repr(entry)[:60] for entry in expected] == [repr(next(endless))[:60] for _ in expected]
