"""The demo's upstream: a bank that keeps working, whose changes go to Kafka as TiCDC sends them, at the wall clock."""

import re
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from consumer.demo.fake_ticdc.bank import Bank
from consumer.demo.fake_ticdc.changefeed import Changefeed, Message
from consumer.demo.fake_ticdc.database import LOGICAL_BITS, Clock, Entry
from consumer.demo.fake_ticdc.dispatcher import Dispatcher
from consumer.demo.fake_ticdc.oracle import Oracle
from consumer.demo.fake_ticdc.producer import produce
from ordering.errors import SourceError

TOPIC = "ticdc"
PARTITIONS = 3
ACCOUNTS = 50

_MESSAGES_A_TRANSACTION = 7
_MOST_HELD_S = 8
"""The bank rests once this much of its work waits: a slow machine then shows the same in more time, not ever more."""

_WATERMARK_EVERY_S = 0.2
_RESTART_EVERY_S = 4.0
_REST_S = 0.1
_RESTART_BACK = 2
_DDL_CHANCE = 0.004
_DUPLICATES = 0.02

_QUIET = {"log_level": 3}
"""librdkafka writes to stderr by itself: errors only, not that a fresh broker still loads its coordinators."""

_MARK = b'"TIDB_WATERMARK"'
_DDL = b'"isDdl":true'
_SENT_AT = re.compile(rb'"ts":\d+')
_WATERMARK_TS = re.compile(rb'"watermarkTs":(\d+)')


@dataclass
class WallClock(Clock):
    """TSOs of now: each larger than the one before, also when the machine's clock steps back."""

    last: int = 0

    def next(self) -> int:
        """Give out the next TSO."""
        self.last = max(self.last + 1, time.time_ns() // 1_000_000 << LOGICAL_BITS)
        return self.last


class Tally:
    """What was sent, by kind. A repetition is a row message that differs from an earlier one in nothing but `ts`."""

    def __init__(self) -> None:
        self.messages = self.rows = self.repeats = self.watermarks = self.ddls = self.restarts = 0
        self._seen: set[int] = set()
        self._mark = 0

    def note(self, message: Message) -> None:
        """Count a message."""
        self.messages += 1
        if _MARK in message.value:
            self.watermarks += 1
            self._note_mark(message)
        elif _DDL in message.value:
            self.ddls += self._is_new(message.value)
        else:
            self.rows += 1
            self.repeats += not self._is_new(message.value)

    def _is_new(self, value: bytes) -> bool:
        content = hash(_SENT_AT.sub(b"", value, count=1))
        new = content not in self._seen
        self._seen.add(content)
        return new

    def _note_mark(self, message: Message) -> None:
        """A watermark that falls back, looked at in one partition: TiCDC was restarted."""
        found = _WATERMARK_TS.search(message.value)
        if message.partition == 0 and found is not None:
            mark = int(found[1])
            self.restarts += mark < self._mark
            self._mark = mark


class LiveUpstream:
    """A thread that runs the bank and sends its changes until told to end; then `final_ts` is the last watermark."""

    def __init__(self, bootstrap: str, *, seed: int, dispatcher: Dispatcher, raw: bool, pace: int) -> None:
        """`pace`: transactions a second."""
        self.bank = Bank(seed, accounts=ACCOUNTS, ddl=_DDL_CHANCE, clock=WallClock())
        self.oracle = Oracle()
        self.tally = Tally()
        self.final_ts: int | None = None
        self._bootstrap, self._pace = bootstrap, pace
        self._resting = False
        self._feed = Changefeed(
            topic=TOPIC,
            default_topic=TOPIC,
            partitions=PARTITIONS,
            dispatcher=dispatcher,
            columns=("id", "no"),
            raw=raw,
            seed=seed,
            watermark_every=int(pace * _WATERMARK_EVERY_S),
            restart_every=int(_RESTART_EVERY_S / _WATERMARK_EVERY_S),
            restart_back=_RESTART_BACK,
            duplicates=_DUPLICATES,
        )
        self._last_ts = 0
        self._ending = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="demo-upstream", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def end(self) -> None:
        """Commit no more; the last watermark follows."""
        self._ending.set()

    def close(self) -> None:
        """End, and wait until everything is sent."""
        self.end()
        if self._thread.ident is not None:
            self._thread.join()

    def check(self) -> None:
        """Raise what kept it from sending."""
        if self._error is not None:
            raise SourceError(f"the demo's upstream can't send: {self._error}", where=self._bootstrap)

    def _run(self) -> None:
        try:
            messages = self._noted(self._feed.messages(self._entries()))
            produce(messages, self._bootstrap, partitions=PARTITIONS, config=_QUIET)
            self.final_ts = self._last_ts + 1
        except Exception as error:  # noqa: BLE001 a thread's error is the main thread's to tell
            self._error = error

    def _noted(self, messages: Iterable[Message]) -> Iterator[Message]:
        for message in messages:
            self.tally.note(message)
            yield message

    def rest(self, *, held: int) -> None:
        """Tell how many messages wait to be applied: too many, and the bank rests."""
        self._resting = held > _MOST_HELD_S * self._pace * _MESSAGES_A_TRANSACTION

    def _entries(self) -> Iterator[Entry]:
        """Yield the bank's commits and DDLs at the pace of the workload, and tell the oracle."""
        due = time.monotonic()
        for entry in self.bank.entries():
            self.oracle.apply(entry)
            self._last_ts = entry.commit_ts
            yield entry
            due += 1 / self._pace
            while self._resting and not self._ending.wait(_REST_S):
                due = time.monotonic()
            if self._ending.wait(max(0.0, due - time.monotonic())):
                return
