"""What the target knows about itself (R1): one value, saved in the transaction that wrote the rows.

Per partition: `start`, from which reading goes on (every event before it is applied, R2); `read_to`, up to which the
partition has been read; `watermark`, the highest seen (R6); `counted_to`, up to which its messages were counted. An
event at or below `base_ts` that lies before `counted_to` was counted and applied already and is just read again; from
there on it is a repetition, or late. Looking ahead of what is applied counts nothing: `read_to` runs ahead then.
`base_ts` is the checkpoint at which these offsets were true: inside a window of `transaction` consistency the
checkpoint runs ahead of it. `window` is one that tasks have begun to write, in `row` consistency, or that is to be
applied once more (`ordering.rewind`): until it is done the target is no state of the upstream, and nothing else may
be done before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ordering.drift import Drift, Drifts
from ordering.errors import ConfigError
from ordering.events import Partition, TableName, rest_at
from ordering.kept_keys import KeptKeys, restored, stored
from ordering.tables.merged_tables import Merged, MergedTable
from ordering.timestamps import BEGINNING, CheckpointTs, ResolvedTs, utc_text
from ordering.window import Range, Window

_FLAGS = ("complete", "ended", "retired")
FORMAT = 5
"""Of what is stored: the latest that is known here. Raised where a version that does not know the new format would go
wrong; what such a version may leave unread does not raise it. Progress without a number is of the first."""
_WHOLE = 1
"""The format of a progress that is stored in whole. Of the second is what moves inside a window (`Progress.moves`)."""
_MOVES, _ROUTED, _MERGED, _JOINED = 2, 3, 4, 5
"""The format of what moves; of a progress with routes, without which rows would go to other tables; of one with merged
tables, which one shard's DDL would change for all; and of one that went over to another source, up to where nothing of
this one counts."""
_MOVING = ("checkpoint_ts", "executed", "counts")
"""What commits inside a window change; all else stays as the window found it."""


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """Offsets and the highest watermark of one partition; `passed` is the last one before `start` (see `Range`).

    `epoch`: of a leader that led when the log reached `read_to`, where it is known. `is_new`: it counts since the last
    window, or did not count meanwhile (`topic return`): what it holds at or below the checkpoint may never have
    been applied. The first window that it has a say in has read all of that.
    """

    start: int
    read_to: int
    watermark: ResolvedTs | None = None
    counted_to: int = 0
    passed: ResolvedTs | None = None
    epoch: int | None = None
    is_new: bool = False

    @property
    def is_unread(self) -> bool:
        """Whether nothing of it was ever read."""
        return self.read_to <= self.start and not self.counted_to and self.watermark is None


@dataclass(frozen=True, slots=True)
class TopicProgress:
    """A topic's identity and the tables it carries, as far as its messages told (`complete`: from the first on).

    `ended`: a DDL took its last table; `retired`: an operator says that it is dead; `retired_to`: partition -> end of
    its log when he said so; `brokers`: by which TiCDC's changefeed writes it, where its API told.
    """

    id: str
    tables: frozenset[TableName] = frozenset()
    complete: bool = False
    ended: bool = False
    retired: bool = False
    retired_to: Mapping[int, int] = field(default_factory=dict)
    brokers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Counts:
    """Totals since the changefeed began. Messages: `events` counts each row message once, repetitions included."""

    events: int = 0
    duplicates_proven: int = 0
    duplicates_unproven: int = 0
    ddls: int = 0
    rows_written: int = 0
    windows: int = 0
    filtered: int = 0
    """Row messages that event filters left out."""
    quarantined: int = 0
    """Messages that were quarantined, whatever became of them since."""

    def plus(self, **more: int) -> "Counts":
        """These totals with some raised."""
        return replace(self, **{name: getattr(self, name) + value for name, value in more.items()})

    @property
    def duplicates(self) -> int:
        """Repetitions dropped, proven by the ledger or not."""
        return self.duplicates_proven + self.duplicates_unproven


@dataclass(frozen=True, slots=True)
class Progress:
    """All that a restart needs."""

    checkpoint_ts: CheckpointTs = BEGINNING
    base_ts: CheckpointTs = BEGINNING
    start_ts: CheckpointTs = BEGINNING
    partitions: Mapping[Partition, PartitionProgress] = field(default_factory=dict)
    topics: Mapping[str, TopicProgress] = field(default_factory=dict)
    executed: frozenset[str] = frozenset()
    counts: Counts = Counts()
    filter_digest: str = ""
    ledger: str = ""
    """Names the ledger in Redis that belongs to this progress: one created again has another."""
    ledger_key: str = field(default="", repr=False)
    """What the ledger's entries are sealed with: a secret, stored with the progress and shown nowhere."""
    ledger_terms: tuple[tuple[int, str], ...] = ()
    """Whose entries count: by the checkpoints at which processes began, their names in the ledger."""
    window: Window | None = None
    loading_ts: CheckpointTs = BEGINNING
    """The TSO of a dump that is being loaded, which is not done yet: nothing else may be done before. 0: none."""
    time_zone: str = ""
    """The one in which TIMESTAMP values were read so far, of rows or of the dump being loaded. "": not known."""
    routes: str = ""
    """A digest of the routes that decide under which names tables lie in the target; "": there are none."""
    sources: Mapping[TableName, TableName] = field(default_factory=dict)
    """With routes: the upstream's tables and views of which something came, and where each lies in the target."""
    merged: Merged = field(default_factory=dict)
    """What is known of merged tables, by their places in the target: see `ordering.tables.merged_tables`."""
    drift: Drifts = field(default_factory=dict)
    """What was found since the changefeed began, by table: see `ordering.drift`."""
    kept_keys: KeptKeys = field(default_factory=dict)
    """Indexes that upstream has lost and the target has kept: see `ordering.kept_keys`."""
    joined_ts: CheckpointTs = BEGINNING
    """Where it went over to the source that it reads now: see `ordering.sources.archive`. 0: it never did."""
    archived: str = ""
    """Which archive is read, and not the topics, and why: `URI: reason`; "": the topics are."""

    @classmethod
    def first(cls, start_ts: CheckpointTs, filter_digest: str, ledger: str, routes: str = "") -> "Progress":
        """The progress of a new changefeed: everything up to `start_ts` counts as applied."""
        return cls(start_ts, start_ts, start_ts, filter_digest=filter_digest, ledger=ledger, routes=routes)

    @property
    def began_ts(self) -> CheckpointTs:
        """Up to where nothing of the source counts that is read now: all of it was in the target already."""
        return max(self.start_ts, self.joined_ts)

    @property
    def untouched(self) -> bool:
        """Whether nothing has been applied since the changefeed began."""
        return self.checkpoint_ts == self.start_ts and not self.partitions and self.counts == Counts()

    @property
    def is_torn(self) -> bool:
        """Whether a crash cut a window of `transaction` consistency in two: the rest of it comes before all else."""
        return self.base_ts < self.checkpoint_ts

    def at(self, checkpoint_ts: CheckpointTs, **changes: Any) -> "Progress":
        """This progress moved to a checkpoint: never back, and DDLs executed at an earlier one are forgotten."""
        if checkpoint_ts < self.checkpoint_ts:
            message = f"checkpoint would fall from {self.checkpoint_ts} to {checkpoint_ts}"
            raise AssertionError(message)
        if checkpoint_ts > self.checkpoint_ts:
            changes.setdefault("executed", frozenset())
        return replace(self, checkpoint_ts=checkpoint_ts, **changes)

    def after_ddl(self, checkpoint_ts: CheckpointTs, identity: str, *, more: bool = False) -> "Progress":
        """This progress once a DDL at `checkpoint_ts` has been executed. `more`: others of this commitTs are left."""
        moved = self.at(checkpoint_ts, base_ts=checkpoint_ts)
        rest = rest_at(checkpoint_ts)
        executed = (moved.executed - {rest}) | {identity} | ({rest} if more else set())
        return replace(moved, executed=executed, counts=moved.counts.plus(ddls=1))

    def offsets(self) -> dict[str, dict[str, dict[str, int | None]]]:
        """The `offsets` column: topic -> partition -> offset to read on from, and the rest."""
        found: dict[str, dict[str, dict[str, int | None]]] = {}
        for (topic, number), p in sorted(self.partitions.items()):
            entry = {"offset": p.start, "read_to": p.read_to, "watermark": p.watermark, "counted_to": p.counted_to}
            entry |= {} if p.passed is None else {"passed": p.passed}
            entry |= {} if p.epoch is None else {"leader_epoch": p.epoch}
            entry |= {"new": True} if p.is_new else {}
            found.setdefault(topic, {})[str(number)] = entry
        return found

    def state(self) -> dict[str, Any]:
        """All but checkpoint, offsets, and the ledger's key and terms, to be shown."""
        return {
            "format": self._format(),
            "base_ts": self.base_ts,
            "start_ts": self.start_ts,
            "topics": {name: _topic_state(topic) for name, topic in sorted(self.topics.items())},
            "executed": sorted(self.executed),
            "counts": _counts_state(self.counts),
            "filter_digest": self.filter_digest,
            "ledger": self.ledger,
            "window": None if self.window is None else _window_state(self.window),
            **({"loading_ts": self.loading_ts} if self.loading_ts else {}),
            **({"time_zone": self.time_zone} if self.time_zone else {}),
            **({"routes": self.routes} if self.routes else {}),
            **({"sources": [[*name, *at] for name, at in sorted(self.sources.items())]} if self.sources else {}),
            **({"merged": [[*at, one.stored()] for at, one in sorted(self.merged.items())]} if self.merged else {}),
            **({"drift": [[*table, *found] for table, found in sorted(self.drift.items())]} if self.drift else {}),
            **({"kept_keys": kept} if (kept := stored(self.kept_keys)) else {}),
            **({"staying_keys": kept} if (kept := stored(self.kept_keys, staying=True)) else {}),
            **({"joined_ts": self.joined_ts} if self.joined_ts else {}),
            **({"archived": self.archived} if self.archived else {}),
        }

    def _format(self) -> int:
        if self.joined_ts or self.archived:
            return _JOINED
        return _MERGED if self.merged else _ROUTED if self.routes else _WHOLE

    def kept_state(self) -> dict[str, Any]:
        """The `state` column: `state()` with the ledger's key and terms."""
        terms = [[*term] for term in self.ledger_terms]
        return {**self.state(), **({"ledger_key": self.ledger_key, "ledger_terms": terms} if self.ledger_key else {})}

    @classmethod
    def restored(cls, checkpoint_ts: int, offsets: dict[str, Any], state: dict[str, Any]) -> "Progress":
        """The value that `offsets()` and `kept_state()` came from. Raises ConfigError for a later version's."""
        check_format(state)
        partitions = {
            Partition(topic, int(number)): _partition(p)
            for topic, numbers in offsets.items()
            for number, p in numbers.items()
        }
        return cls(
            checkpoint_ts=CheckpointTs(checkpoint_ts),
            base_ts=CheckpointTs(state["base_ts"]),
            start_ts=CheckpointTs(state["start_ts"]),
            partitions=partitions,
            topics={name: _topic(value) for name, value in state["topics"].items()},
            executed=frozenset(state["executed"]),
            counts=_counts(state["counts"]),
            filter_digest=state["filter_digest"],
            ledger=state["ledger"],
            ledger_key=state.get("ledger_key", ""),
            ledger_terms=tuple((began, name) for began, name in state.get("ledger_terms", ())),
            window=_window(state["window"]) if state.get("window") else None,
            loading_ts=CheckpointTs(state.get("loading_ts", 0)),
            time_zone=state.get("time_zone", ""),
            routes=state.get("routes", ""),
            sources={TableName(*one[:2]): TableName(*one[2:]) for one in state.get("sources", [])},
            merged={TableName(*one[:2]): MergedTable.restored(one[2]) for one in state.get("merged", [])},
            drift={TableName(*one[:2]): Drift(*one[2:]) for one in state.get("drift", [])},
            kept_keys=restored(state.get("kept_keys", []), state.get("staying_keys", [])),
            joined_ts=CheckpointTs(state.get("joined_ts", 0)),
            archived=state.get("archived", ""),
        )

    def goes_on_from(self, start: "Progress") -> bool:
        """Whether it differs from `start` in nothing but what commits inside a window change."""
        pairs = ((getattr(self, f.name), getattr(start, f.name)) for f in fields(Progress) if f.name not in _MOVING)
        return all(ours is theirs or ours == theirs for ours, theirs in pairs)

    def moves(self) -> dict[str, Any]:
        """Instead of `kept_state()`, where all else is stored already: what moved since."""
        return {"format": _MOVES, "executed": sorted(self.executed), "counts": _counts_state(self.counts)}

    def moved(self, checkpoint_ts: int, moves: dict[str, Any]) -> "Progress":
        """The value that `moves()` came from, which goes on from this one. Raises ConfigError for a later version's."""
        check_format(moves)
        executed, counts = frozenset(moves["executed"]), _counts(moves["counts"])
        return replace(self, checkpoint_ts=CheckpointTs(checkpoint_ts), executed=executed, counts=counts)


def check_format(state: Mapping[str, Any]) -> None:
    """Raise ConfigError for what a later version stored."""
    found = state.get("format", 1)
    if found > FORMAT:
        raise ConfigError(
            f"the progress in the target is of format {found}, which a later version wrote; this one knows {FORMAT}",
            hint="run that version; `reconciler help upgrade` describes how to go back",
        )


def _counts_state(counts: Counts) -> dict[str, int]:
    return {f.name: getattr(counts, f.name) for f in fields(Counts)}


def _counts(value: Mapping[str, int]) -> Counts:
    return Counts(**{f.name: value.get(f.name, 0) for f in fields(Counts)})


def _topic_state(topic: TopicProgress) -> dict[str, Any]:
    tables = sorted([*name] for name in topic.tables)
    flags = {name: getattr(topic, name) for name in _FLAGS}
    ends = {"retired_to": {str(number): end for number, end in topic.retired_to.items()}} if topic.retired_to else {}
    brokers = {"brokers": sorted(topic.brokers)} if topic.brokers else {}
    return {"id": topic.id, "tables": tables, **flags, **ends, **brokers}


def _partition(p: Mapping[str, Any]) -> PartitionProgress:
    read = p["offset"], p["read_to"], p["watermark"], p["counted_to"]
    return PartitionProgress(*read, p.get("passed"), p.get("leader_epoch"), p.get("new", False))


def _topic(value: dict[str, Any]) -> TopicProgress:
    tables = frozenset(TableName(*name) for name in value["tables"])
    ends = {int(number): end for number, end in value.get("retired_to", {}).items()}
    flags, brokers = {name: value[name] for name in _FLAGS}, frozenset(value.get("brokers", ()))
    return TopicProgress(value["id"], tables, **flags, retired_to=ends, brokers=brokers)


def _window_state(window: Window) -> dict[str, Any]:
    ranges = [[*r.partition, r.start, r.stop, r.counted_to, r.passed] for r in window.ranges]
    return {
        "low": window.low,
        "base": window.base,
        "high": window.high,
        "resolved": window.resolved,
        "ranges": ranges,
        "epochs": [r.epoch for r in window.ranges],
        "to_end": window.to_end,
        "rewound": window.rewound,
        **({"ahead": True} if window.ahead else {}),
    }


def _window(value: dict[str, Any]) -> Window:
    epochs = value.get("epochs") or [None] * len(value["ranges"])  # versions before 0.2 knew none
    return Window(
        CheckpointTs(value["low"]),
        CheckpointTs(value["base"]),
        ResolvedTs(value["high"]),
        ResolvedTs(value["resolved"]),
        tuple(
            replace(Range(Partition(topic, number), *rest), epoch=epoch)
            for (topic, number, *rest), epoch in zip(value["ranges"], epochs, strict=True)
        ),
        to_end=value["to_end"],
        rewound=value.get("rewound", False),
        ahead=value.get("ahead", False),
    )


def refuse_other_start(progress: Progress, start_ts: int, changefeed: str) -> None:
    """Raise ConfigError where another start-ts is asked for than the one of a changefeed that has applied nothing yet.

    Later, start-ts says nothing any more: it may stand in the config as it was, and in whatever config is a copy.
    """
    if start_ts and start_ts != progress.start_ts and progress.checkpoint_ts == progress.start_ts:
        raise ConfigError(
            f"source.start-ts is {start_ts}, but changefeed {changefeed!r} was begun at {progress.start_ts}",
            where="source.start-ts",
            hint=f"take start-ts out again if the target holds all up to {progress.start_ts}, as after a dump;"
            f" if it holds all up to {start_ts}, `reconciler progress reset CONFIG --yes` lets it begin there",
        )


def refuse_unfinished_load(progress: Progress, where: str) -> None:
    """Raise ConfigError while a dump is loaded only in part: applying anything would leave gaps."""
    if progress.loading_ts:
        raise ConfigError(
            f"a dump of {progress.loading_ts} ({utc_text(progress.loading_ts)} UTC) is loaded only in part",
            where=where,
            hint="`reconciler load CONFIG --dump DIR` continues it (`reconciler help load`: how to start over)",
        )
