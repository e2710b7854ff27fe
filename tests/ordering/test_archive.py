"""From topics to an archive and back, against a model: what is applied is all that upstream committed, each once.

The model is `Upstream`: commits in order; topics whose rows run ahead of their watermarks, whose beginning retention
deletes whenever it likes; an archive that lags. The reader decides by the functions under test alone.
"""

from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordering.ddl_barrier import pending
from ordering.events import DdlEvent, Partition, Position, TableName, any_ddl_at, ddl_identity, rest_at
from ordering.progress import PartitionProgress, Progress, TopicProgress
from ordering.sources.archive import begun_again, is_half_done, taken_up
from ordering.sources.retention import CLOCK_SLACK_MS, began_after, lacking, may_lack
from ordering.timestamps import BEGINNING, CheckpointTs, CommitTs, ResolvedTs
from ordering.window import Range, Window

MINUTE = 60_000
P = [Partition("t", number) for number in range(3)]


def at(minute: float) -> int:
    return int(minute * MINUTE) << 18


@dataclass
class Upstream:
    """Commits by minute; (commitTs, time of writing, is a watermark) of each partition; where each log begins."""

    chance: Random
    logs: dict[Partition, list[tuple[int, int, bool]]] = field(default_factory=lambda: {p: [] for p in P})
    begins: dict[Partition, int] = field(default_factory=lambda: dict.fromkeys(P, 0))
    commits: list[int] = field(default_factory=list)
    archived: int = 0
    minute: int = 1

    def goes_on(self) -> None:
        """Time passes: rows are committed and sent, some far ahead of the watermarks; the archive may follow."""
        self.minute += self.chance.randrange(1, 12)
        resolved = at(self.minute) - 1
        for number in range(self.chance.randrange(4)):
            self.commits.append(at(self.minute) + number)
            skew = self.chance.randrange(-CLOCK_SLACK_MS + 1, CLOCK_SLACK_MS)
            log = self.logs[self.chance.choice(P)]
            written = max([self.minute * MINUTE + skew, *(when for _, when, _ in log[-1:])])
            log.append((self.commits[-1], written, False))
        for log in self.logs.values():
            if self.chance.random() < 0.7:
                log.append((resolved, max([self.minute * MINUTE, *(when for _, when, _ in log[-1:])]), True))
        if self.chance.random() < 0.5:
            self.archived = resolved

    def expires(self) -> None:
        """Retention deletes, and nobody knows what."""
        p = self.chance.choice(P)
        self.begins[p] = self.chance.randrange(self.begins[p], len(self.logs[p]) + 1)

    def times(self) -> dict[Partition, int]:
        return {p: self.logs[p][begin][1] for p, begin in self.begins.items() if begin < len(self.logs[p])}


@dataclass
class Reader:
    """Reads as a run does; `applied` and `progress` change together."""

    upstream: Upstream
    progress: Progress = field(default_factory=Progress)
    applied: list[int] = field(default_factory=list)
    turns: int = 0

    def round(self) -> None:
        if self.progress.archived:
            if not may_lack(self.upstream.begins, self.upstream.times(), self.progress.checkpoint_ts):
                self.turn("")
            else:
                self.take(self.upstream.commits, self.upstream.archived)
        elif self.has_lost_its_beginning():
            if self.upstream.archived >= self.progress.checkpoint_ts > 0:
                self.turn("lost")
        else:
            self.read_topics()

    def turn(self, because: str) -> None:
        self.turns += 1
        self.progress = taken_up(self.progress, because=because, ledger="new")

    def has_lost_its_beginning(self) -> bool:
        begins, known = self.upstream.begins, self.progress.partitions
        if not known:
            return bool(may_lack(begins, self.upstream.times(), self.progress.began_ts))
        return any(begins[p] > at.start for p, at in known.items())

    def read_topics(self) -> None:
        starts = {p: at.start for p, at in self.progress.partitions.items()} or self.upstream.begins
        held = {p: self.upstream.logs[p][start:] for p, start in starts.items()}
        marks = [max((ts for ts, _, is_mark in some if is_mark), default=0) for some in held.values()]
        resolved = min(marks)
        if resolved > self.progress.checkpoint_ts:
            self.take([ts for some in held.values() for ts, _, is_mark in some if not is_mark], resolved)
            self.progress = replace(self.progress, partitions={p: self.next_start(p, starts[p]) for p in P})

    def next_start(self, p: Partition, start: int) -> PartitionProgress:
        log, high = self.upstream.logs[p], self.progress.checkpoint_ts
        above = (n for n in range(start, len(log)) if log[n][0] > high or (log[n][2] and n == len(log) - 1))
        first = next(above, len(log))
        return PartitionProgress(max(0, min(first, len(log) - 1)), len(log))

    def take(self, rows: list[int], resolved: int) -> None:
        if resolved > self.progress.checkpoint_ts:
            self.applied += sorted(ts for ts in rows if self.progress.checkpoint_ts < ts <= resolved)
            self.progress = self.progress.at(CheckpointTs(resolved), base_ts=CheckpointTs(resolved))


@settings(max_examples=500)
@given(st.integers(0, 2**32), st.booleans())
def test_nothing_is_lost_or_applied_twice(seed: int, begins_late: bool) -> None:
    chance = Random(seed)
    upstream = Upstream(chance)
    if begins_late:
        for _ in range(10):
            upstream.goes_on()
    start = upstream.commits[-1] if begins_late and upstream.commits else 0
    reader = Reader(upstream, Progress.first(CheckpointTs(start), "", ""))
    for _ in range(60):
        chance.choice([upstream.goes_on, upstream.goes_on, reader.round, reader.round, upstream.expires])()
        expected = [ts for ts in upstream.commits if start < ts <= reader.progress.checkpoint_ts]
        assert reader.applied == expected
    for _ in range(200):  # nothing expires any more: the topics are read again, and everything is applied
        upstream.goes_on()
        reader.round()
    for p in P:
        upstream.logs[p].append((at(upstream.minute), upstream.minute * MINUTE, True))
    reader.round()
    reader.round()
    assert not reader.progress.archived
    assert reader.progress.checkpoint_ts in (0, at(upstream.minute))


@pytest.mark.parametrize(
    ("begin", "first", "lacks"),
    [(0, None, False), (0, 10**9, False), (7, None, True), (7, 50, False), (7, 90, False), (7, 91, True)],
)
def test_the_first_message_that_is_left_tells_what_was_deleted(begin: int, first: int | None, lacks: bool) -> None:
    times = {} if first is None else {P[0]: first * MINUTE}
    assert may_lack({P[0]: begin}, times, at(100)) == ([P[0]] if lacks else [])


@pytest.mark.parametrize(("first", "later"), [([], True), ([90], False), ([91], True), ([200, 90], False)])
def test_one_old_message_tells_that_their_changefeed_had_begun(first: list[int], later: bool) -> None:
    times = {Partition("t", number): minute * MINUTE for number, minute in enumerate(first)}
    assert began_after(times, at(100)) is later


def test_logs_of_a_changefeed_that_may_have_begun_later_all_lack_something() -> None:
    old, young = {P[0]: 90 * MINUTE, P[1]: 200 * MINUTE}, {P[0]: 200 * MINUTE, P[1]: 300 * MINUTE}
    assert lacking({P[0]: 0, P[1]: 7}, old, at(100)) == [P[1]]
    assert lacking({P[0]: 0, P[1]: 0}, old, at(100)) == []
    assert lacking({P[0]: 0, P[1]: 0}, young, at(100)) == [P[0], P[1]]
    assert lacking({P[0]: 0, P[1]: 0}, young, at(100), {"t"}) == [P[0], P[1]]


def test_each_topic_that_is_not_known_to_be_the_same_has_to_be_old_enough_by_itself() -> None:
    """One of several that was created again: the others tell nothing of what it held before."""
    other, silent = Partition("u", 0), Partition("v", 0)
    times = {P[0]: 10 * MINUTE, P[1]: 200 * MINUTE, other: 95 * MINUTE}
    begins = {P[0]: 0, P[1]: 0, other: 0, silent: 0}
    assert lacking(begins, times, at(100)) == [other, silent]
    assert lacking(begins, times, at(100), {"u", "v"}) == []
    assert lacking(begins, times, at(106), {"t"}) == [silent]


@pytest.mark.parametrize("more", [True, False])
def test_a_statement_of_which_parts_are_left_is_half_done(more: bool) -> None:
    first = Progress(CheckpointTs(8)).after_ddl(CheckpointTs(9), ddl_identity(9, "d", "a", "x"), more=True)
    assert is_half_done(first.executed, 9)
    second = first.after_ddl(CheckpointTs(9), ddl_identity(9, "d", "b", "x"), more=more)
    assert is_half_done(second.executed, 9) is more
    assert Progress.restored(9, second.offsets(), second.state()).executed == second.executed


def test_a_changefeed_that_began_with_the_first_message_may_lack_whatever_was_deleted() -> None:
    assert may_lack({P[0]: 7}, {P[0]: 0}, 0) == [P[0]]


def ddl(ts: int, sql: str, topic: str = "t") -> DdlEvent:
    return DdlEvent(Position(topic, 0, 0), CommitTs(ts), "RENAME", "d", "t", sql)


def test_a_ddl_at_the_checkpoint_is_executed_once_however_the_other_source_spells_it() -> None:
    parts = [ddl(9, "RENAME TABLE a TO z"), ddl(9, "RENAME TABLE b TO a")]
    done = Progress(CheckpointTs(9), executed=frozenset(one.identity for one in parts))
    whole = ddl(9, "RENAME TABLE a TO z, b TO a", "files/")
    assert pending([whole], BEGINNING, CheckpointTs(9), done.executed) == [whole]
    assert pending([whole], BEGINNING, CheckpointTs(9), taken_up(done, because="x", ledger="").executed) == []


def test_a_ddl_at_the_checkpoint_that_was_not_sent_yet_is_not_passed_over() -> None:
    moved = taken_up(Progress(CheckpointTs(9)), because="x", ledger="")
    late = ddl(9, "DROP TABLE a")
    assert pending([late], BEGINNING, CheckpointTs(9), moved.executed) == [late]


def test_what_a_rewound_progress_says_of_its_old_checkpoint_counts_for_the_other_source_too() -> None:
    rewound = Progress(CheckpointTs(5), executed=frozenset([ddl_identity(9, "d", "t", "x")]))
    assert any_ddl_at(9) in taken_up(rewound, because="x", ledger="").executed


@pytest.mark.parametrize(
    ("done", "parts", "half"), [(0, 2, False), (1, 2, True), (2, 2, False), (1, 1, False), (1, 0, False)]
)
def test_a_statement_that_was_executed_in_part_is_found(done: int, parts: int, half: bool) -> None:
    executed = [ddl_identity(9, "d", "t", str(number)) for number in range(done)] + [ddl_identity(8, "d", "t", "")]
    assert is_half_done(executed, 9, parts) is half
    assert not is_half_done([*executed, any_ddl_at(9), rest_at(9)], 9, parts)


def test_a_window_that_was_begun_is_done_again_with_the_rows_of_the_other_source() -> None:
    low, high = CheckpointTs(5), ResolvedTs(9)
    begun = Window(low, CheckpointTs(4), high, ResolvedTs(12), (Range(P[0], 1, 2, 0),), ahead=True)
    moved = taken_up(Progress(low, CheckpointTs(4), window=begun), because="x", ledger="")
    files = (Range(Partition("d/t/1/CDC", 0), 3, 4, 0),)
    assert begun_again(moved, files).window == Window(low, low, high, high, files)
    assert begun_again(taken_up(Progress(low), because="x", ledger=""), files).window is None


def test_a_progress_that_moved_is_stored_and_older_versions_refuse_it() -> None:
    topics = {"t": TopicProgress("id", frozenset([TableName("d", "t")]), complete=True)}
    moved = taken_up(Progress(CheckpointTs(5), topics=topics), because="retention", ledger="l")
    assert not moved.topics["t"].complete
    assert Progress.restored(5, moved.offsets(), moved.kept_state()) == moved
    assert moved.state()["format"] == 5
    assert taken_up(moved, because="", ledger="m").state()["format"] == 5
