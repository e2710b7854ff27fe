"""Deciding about messages that were quarantined: apply one after its cause was fixed, or leave it out for good.

A message is applied only if that brings its row to the upstream's state at the checkpoint:

- the checkpoint has passed it, and no window is half applied;
- nothing newer of its row was applied since: that is noted while later events are applied (`superseded`). Of a message
  that could not be decoded nobody knew the row, so nobody looked: it is applied by rewinding to before it. Nor is a row
  written where such a message may be a later one of it, whatever was decided about that one;
- no DDL was executed on its table since: it may have removed the row, or changed what a row is, or given the table's
  name to another one (`consumer.quarantine.table_fate`).

Then its row is missing in the target (or, where a DELETE was refused, still there), and all other rows are as upstream
has them, so writing it meets no other row. The message's new state is saved in the transaction that writes the row.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from consumer.codec import canal_json
from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.config.routes import read_routes
from consumer.config.zone import in_zone
from consumer.ddl.check_columns import misfits
from consumer.filters.promoted_keys import NONE_KEPT, PromotedKeys
from consumer.large_messages.reference import reference
from consumer.operate.progress import opened, refuse_living_leader, stored_of
from consumer.quarantine.held_row import is_row_of
from consumer.quarantine.table_fate import Fate, fate_of
from consumer.tasks.encoding.chunk_encoder import RowError
from consumer.tasks.order import OrderTask
from consumer.wiring import bodies_of, schemas_of, target_of
from ordering.errors import TRANSIENT, ConfigError, InputError, TargetError
from ordering.events import Kind, Position, TableName
from ordering.kept_keys import lost_by
from ordering.progress import Progress
from ordering.quarantine import UNDECIDED, Changes, Quarantined, QuarantineState
from ordering.rows.identity import table_of
from ordering.rows.net_effect import KeyChange
from ordering.rows.split_update import split
from ordering.timestamps import MAX_TSO, CommitTs, physical_ms, utc_text
from sinks.bookkeeping.ddl_log import KEPT, reaches_back
from sinks.bookkeeping.progress_rows import Lease
from sinks.rows.schema import TableSchema
from sinks.rows.spool import Spool
from sinks.target import Target


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a message, and why."""

    position: Position
    state: QuarantineState
    why: str


_CLOCKS_MS = 24 * 60 * 60 * 1000
"""Clocks of brokers and of TiCDC, and PD's, are taken to differ by less."""
_NOT_APPLIED = {QuarantineState.HELD, QuarantineState.DISCARDED}


class _Undecided(Exception):  # noqa: N818 no error: said of one message
    """Nothing is applied of a message; `state` is what it becomes, or stays."""

    def __init__(self, why: str, state: QuarantineState = QuarantineState.HELD) -> None:
        super().__init__(why)
        self.why, self.state = why, state


def listed(config: Config) -> list[Quarantined]:
    """All messages that were quarantined, by position, without their bytes."""
    with _reading(config) as target:
        return target.quarantine.all(config.changefeed)


def message_of(config: Config, position: Position) -> Quarantined:
    """One of them, with its bytes. Raises ConfigError if it was not quarantined."""
    with _reading(config) as target:
        return _known(target, config, position)


def replay(config: Config, positions: Iterable[Position]) -> Iterator[Verdict]:
    """Apply these messages, or all that are held, in the order of their commitTs; tell of each what became of it."""
    with _leading(config, positions, {QuarantineState.HELD}) as (target, progress, lease, chosen):
        if progress.window is not None or progress.base_ts < progress.checkpoint_ts:
            raise ConfigError(
                f"changefeed {config.changefeed!r} has a window that is half applied",
                where=target.name,
                hint="let it end: `reconciler run CONFIG --once`, then replay",
            )
        read_routes(config.sink).check_change(progress.routes, config.changefeed)
        work = _Replay(config, target, in_zone(progress, config.source.time_zone, config.changefeed), lease)
        for one in sorted(chosen, key=lambda one: (one.commit_ts or 0, one.position)):
            yield work.replayed(one)


def discard(config: Config, positions: Iterable[Position], reason: str) -> list[Verdict]:
    """Leave these messages out for good, or all that are undecided."""
    with _leading(config, positions, UNDECIDED) as (target, progress, lease, chosen):
        changes = Changes(decided=tuple((one.position, QuarantineState.DISCARDED, reason) for one in chosen))
        target.save(progress, lease, aside=changes)
        return [Verdict(one.position, QuarantineState.DISCARDED, reason) for one in chosen]


class _Replay:
    """Applies single messages under a lease."""

    def __init__(self, config: Config, target: Target, progress: Progress, lease: Lease) -> None:
        self._config, self._target, self._progress, self._lease = config, target, progress, lease
        self._filter, self._promoted = read_filter(config.filter), PromotedKeys.of(config.filter.promoted_keys)
        self._all = target.quarantine.all(config.changefeed)
        self._ddls = target.ddl_log.latest(config.changefeed, KEPT)
        self._format = schemas_of(config, target).format
        self._bodies = bodies_of(config).reading(self._format)

    def replayed(self, one: Quarantined) -> Verdict:
        """Apply one message, or say why not."""
        if one.state is not QuarantineState.HELD:
            return Verdict(one.position, one.state, one.note or f"it is {one.state.value}")
        try:
            self._apply(one)
        except _Undecided as undecided:
            if undecided.state is not one.state:
                self._save(one.position, undecided.state, undecided.why)
            return Verdict(one.position, undecided.state, undecided.why)
        return Verdict(one.position, QuarantineState.REPLAYED, one.about)

    def _save(self, position: Position, state: QuarantineState, why: str) -> None:
        self._target.save(self._progress, self._lease, aside=Changes(decided=((position, state, why),)))

    def _apply(self, one: Quarantined) -> None:
        message = self._decoded(one)
        kind, ts = canal_json.KINDS[message.type], message.tidb.commit_ts if message.tidb else 0
        self._check_wanted(one, message, kind)
        if ts > self._progress.checkpoint_ts:
            raise _Undecided("the checkpoint has not passed it yet: run first")
        if one.row is None or one.commit_ts is None:
            raise _Undecided(
                "its row was not known, so nobody looked for later events: `reconciler progress rewind CONFIG"
                f" {ts - 1}` applies it, and what came after it, again"
            )
        self._check_unread(one, ts)
        name = table_of(one.row)
        self._check_place(name)
        self._check_ddls(name, ts)
        schema = self._target.catalog().get(name)
        if schema is None:
            raise _Undecided(f"table {name} is missing in the target, and no DDL is known that took it away")
        self._check_types(one, name)
        names = self._key(message, schema, ts)
        self._check_same_key(one.row, message, name, names)
        changes = Changes(decided=((one.position, QuarantineState.REPLAYED, ""),))
        order = OrderTask(self._target.catalog().tables, self._target.encoder, self._bodies, whole_transactions=False)
        try:
            with Spool() as spool:
                keys = {f"{name.database}\0{name.table}": names}
                for chunk in order.chunks([self._half(one, message, kind, ts)], keys):
                    spool.add(chunk)
                counts = self._progress.counts.plus(rows_written=spool.rows)
                progress = replace(self._progress, counts=counts)
                self._target.apply(spool, progress, self._lease, lambda _: None, changes)
        except TRANSIENT:
            raise
        except (RowError, InputError, TargetError) as error:
            why = error.error if isinstance(error, RowError) else error
            raise _Undecided(f"still refused: {why.fact}") from error
        self._progress = progress

    def _key(self, message: canal_json.Envelope, schema: TableSchema, ts: int) -> tuple[str, ...]:
        if not message.primary_key:
            lost = lost_by(self._progress.kept_keys, ts)
            try:
                self._promoted.check(schema, "", lost.get(schema.name.folded, NONE_KEPT))
            except TargetError as error:
                raise _Undecided(f"still refused: {error.fact}") from error
        return tuple(message.primary_key or schema.handle_key)

    def _check_same_key(self, row: bytes, message: canal_json.Envelope, table: TableName, key: tuple[str, ...]) -> None:
        """Raise where the target tells rows apart by other columns than when the message was held.

        Its row would be taken for another one, and nobody looked for later events of it by the key that is there now.
        """
        if not is_row_of(message, row, table, key):
            raise _Undecided(
                f"the target tells rows of {table} apart by {', '.join(key)} now, and did not when it was"
                " held: write the row by hand as upstream has it, then discard the message"
            )

    def _decoded(self, one: Quarantined) -> canal_json.Envelope:
        try:
            message = canal_json.decode(self._value(one), one.position)
            if message.is_ddl:
                hint = "make the change by hand if it is missing, then discard the message"
                raise _Undecided(f"it is a DDL: {message.sql[:200]}; {hint}")
            if message.type == canal_json.WATERMARK:
                raise _Undecided("it is a watermark: nothing is missing", QuarantineState.DISCARDED)
            canal_json.check_row(message, one.position)
        except InputError as error:
            raise _Undecided(f"still undecodable: {error.fact}") from error
        return message

    def _value(self, one: Quarantined) -> bytes | None:
        return self._format.canal(one.value, one.position, self._config.limits.message_bytes)

    def _check_wanted(self, one: Quarantined, message: canal_json.Envelope, kind: Kind) -> None:
        if not self._filter.tables.of_message(message.database, message.table):
            raise _Undecided("filter.rules leave it out", QuarantineState.DISCARDED)
        events = self._filter.for_rows(self._target.catalog())
        value = self._value(one) or b""
        name = message.database, message.table
        try:
            is_ignored = events is not None and events.ignores_row(kind, name, value, lambda: one.position)
        except InputError as error:
            raise _Undecided(f"still refused: {error.fact}") from error
        if is_ignored:
            raise _Undecided("filter.event-filters leave it out", QuarantineState.DISCARDED)

    def _check_types(self, one: Quarantined, name: TableName) -> None:
        value = self._value(one) or b""
        try:
            types = canal_json.types_of(value, one.position)
        except InputError as error:
            raise _Undecided(f"still undecodable: {error.fact}") from error
        for fact in misfits(name, types, self._target.catalog(), self._config.source.time_zone):
            raise _Undecided(f"still refused: {fact}")

    def _check_ddls(self, name: TableName, ts: int) -> None:
        """Raise for a DDL about the table, or about its whole database, that was executed since."""
        change = fate_of(self._ddls, name, ts, MAX_TSO)
        if change is not None:
            fate, line = change
            if fate is Fate.EMPTIED:
                raise _Undecided(f"by the DDL at {line.commit_ts}: {line.sql[:200]}", QuarantineState.SUPERSEDED)
            raise _Undecided(
                f"its table {fate.value} since, at {line.commit_ts} ({utc_text(line.commit_ts)} UTC): {line.sql[:200]};"
                " write the row by hand where upstream has it, then discard the message"
            )
        if not reaches_back(self._ddls, ts):
            raise _Undecided("the DDL log does not reach back to it: its table may have been changed since")

    def _check_unread(self, one: Quarantined, ts: int) -> None:
        """Raise where a message that could not be decoded may be a later one of the row.

        It is none if its partition held it before the row's message, of which copies may have come again; nor if Kafka
        held it a day before the row was committed; nor if it is about no row, as can be read by now.
        """
        first = min(
            c.position for c in self._all if (c.row, c.commit_ts) == (one.row, one.commit_ts) and _beside(c, one)
        )
        for other in self._all:
            if other.row is not None or other.state not in _NOT_APPLIED:
                continue
            is_before = _beside(other, one) and other.position < first
            if not (is_before or _was_held_before(other, one, ts) or self._is_about_no_row(other.position)):
                raise _Undecided(
                    f"the message at {other.position} could not be decoded ({other.state.value}) and may be a later one"
                    f" of this row: `reconciler progress rewind CONFIG {ts - 1}` applies all from here on again, once"
                    " that message can be decoded; else write the row by hand as upstream has it, then discard this one"
                )

    def _is_about_no_row(self, position: Position) -> bool:
        """Whether it can be read by now, and is a DDL or a watermark."""
        other = _known(self._target, self._config, position)
        try:
            message = canal_json.decode(self._value(other), position)
        except InputError:
            return False
        return message.is_ddl or message.type == canal_json.WATERMARK

    def _check_place(self, name: TableName) -> None:
        """Whether its table's place is known to be no other table's."""
        names = self._target.names
        if names is not None and names.known_as(name) is None:
            raise _Undecided(f"no other message of {name} has come, so its place by sink.dispatchers may be another's")

    def _half(self, one: Quarantined, message: canal_json.Envelope, kind: Kind, ts: int) -> KeyChange:
        """What the message does to its own row, as reading tasks release it."""
        order, _ = split(kind, CommitTs(ts), moved=False)
        if kind is Kind.DELETE or message.tidb is None or not message.data:
            return one.row or b"", order, b"", 0
        elsewhere = message.tidb.claim_check_location or message.tidb.only_handle_key
        content = reference(message.tidb.claim_check_location, one.position) if elsewhere else bytes(message.data[0])
        return one.row or b"", order, content, 0


def _beside(one: Quarantined, other: Quarantined) -> bool:
    """Whether both lie in one partition."""
    return one.position[:2] == other.position[:2]


def _was_held_before(other: Quarantined, one: Quarantined, ts: int) -> bool:
    """Whether Kafka held it well before the commitTs of one whose time tells no other clock: what it holds is older.

    Watermarks don't tell: they bound what follows them from below, and nothing from above.
    """
    if other.timestamp is None or one.timestamp is None:
        return False
    return other.timestamp + _CLOCKS_MS < physical_ms(ts) <= one.timestamp + _CLOCKS_MS


@contextmanager
def _reading(config: Config) -> Iterator[Target]:
    target = target_of(config)
    try:
        stored_of(config, target)
        yield target
    finally:
        target.close()


def _known(target: Target, config: Config, position: Position) -> Quarantined:
    found = target.quarantine.message(config.changefeed, position)
    if found is None:
        raise ConfigError(
            f"no such message was quarantined: {position}",
            where=target.name,
            hint="`reconciler quarantine list CONFIG`",
        )
    return found


@contextmanager
def _leading(
    config: Config, positions: Iterable[Position], wanted: Collection[QuarantineState]
) -> Iterator[tuple[Target, Progress, Lease, list[Quarantined]]]:
    """Become the leader, to decide about these messages, or about all in a wanted state; with their bytes.

    Raises LeadershipLostError while an instance runs.
    """
    with opened(config) as target:
        known = stored_of(config, target)
        refuse_living_leader(config, target)
        asked = list(positions)
        for position in asked:
            _known(target, config, position)
        claimed = target.claim(config.changefeed, known.progress)
        # what ran until a moment ago may have superseded some
        chosen = asked or [p.position for p in target.quarantine.all(config.changefeed) if p.state in wanted]
        messages = [_known(target, config, position) for position in chosen]
        yield target, claimed.progress, Lease(config.changefeed, claimed.epoch), messages
