"""What an operator may do with a changefeed's progress while no instance runs: show, export, import, reset, rewind.

Each checks all that can be checked first, then takes the leadership and changes the progress in one transaction under
the new epoch: an instance that starts meanwhile either loses it or makes the command fail; nothing is half done.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from consumer.codec import canal_json
from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.config.routes import read_routes
from consumer.operate.moving import as_read_here
from consumer.operate.rewind_checks import check_bounds, check_ddls, check_gone, check_keyless, check_keys
from consumer.source.clock import check_caught_up, doubted_marks
from consumer.source.listed_marks import check_before_listed
from consumer.source.offer import added, retired_end
from consumer.source.port import source_of
from consumer.source.probe import Source
from consumer.wiring import format_of, reading, target_of
from ordering.errors import ConfigError, InputError, LeadershipLostError
from ordering.events import Partition, Position, TableName
from ordering.progress import Progress
from ordering.quarantine import Changes, Quarantined, QuarantineState
from ordering.rewind import reached, rewound
from ordering.timestamps import CheckpointTs, physical_ms, utc_text
from sinks.bookkeeping.ddl_log import KEPT, DdlState
from sinks.bookkeeping.definitions import Definition, Wanted
from sinks.bookkeeping.progress_rows import Stored
from sinks.ddl.kept_definitions import changefeed_of, is_of_view
from sinks.target import Target

FORMAT = 1
"""Of exported progress."""

_DUMP = "load a dump again (`reconciler progress reset`), or restore a backup with its progress"
_ENDING_S = 2.0
_LOOK_S = 0.05

Decide = Callable[[Progress], Progress]


@contextmanager
def opened(config: Config) -> Iterator[Target]:
    """The changefeed's target, connected."""
    target = target_of(config)
    try:
        target.connect()
        yield target
    finally:
        target.close()


@contextmanager
def sourced(config: Config) -> Iterator[Source]:
    """The changefeed's topics."""
    source = Source.of(config)
    try:
        yield source
    finally:
        source.close()


def stored_of(config: Config, target: Target) -> Stored:
    """The changefeed's progress. Raises ConfigError if it has not run yet."""
    stored = target.stored(config.changefeed)
    if stored is None:
        raise ConfigError(
            f"changefeed {config.changefeed!r} has no progress", where=target.name, hint="it has not run yet"
        )
    return stored


def refuse_living_leader(config: Config, target: Target) -> None:
    """Raise LeadershipLostError while an instance of the changefeed runs.

    A server may take a moment to notice that the connection of one that has just ended is gone.
    """
    look = Retrying(
        retry=retry_if_result(bool),
        wait=wait_fixed(_LOOK_S),
        stop=stop_after_delay(_ENDING_S),
        retry_error_callback=lambda _: True,
    )
    if look(target.is_led, config.changefeed):
        raise LeadershipLostError(
            f"an instance of changefeed {config.changefeed!r} is running",
            where=target.name,
            hint="stop it (and whatever would start another one), then run this command again",
        )


def shown(config: Config) -> dict[str, Any]:
    """The progress as it is stored, and whether an instance runs."""
    target = target_of(config)
    try:
        stored = stored_of(config, target)
        lives = target.is_led(config.changefeed)
    finally:
        target.close()
    progress = stored.progress
    return {
        "changefeed": config.changefeed,
        "target": target.name,
        "checkpoint_ts": progress.checkpoint_ts,
        "checkpoint_time": utc_text(progress.checkpoint_ts),
        "applied_again_to": reached(progress) if progress.window is not None and progress.window.rewound else None,
        "epoch": stored.epoch,
        "leader_lives": lives,
        "updated_at": stored.updated_at.isoformat(),
        "offsets": progress.offsets(),
        "state": progress.state(),
    }


def exported(config: Config) -> dict[str, Any]:
    """The progress as `imported` takes it. Raises LeadershipLostError if an instance moves it meanwhile."""
    target = target_of(config)
    try:
        progress = stored_of(config, target).progress
        definitions = target.definitions.of(_places_of(config, progress))
        aside = [[*one.position, one.state.value] for one in target.quarantine.all(config.changefeed)]
        if stored_of(config, target).progress != progress:
            raise LeadershipLostError(
                "an instance of this changefeed changed the progress while it was exported",
                where=target.name,
                hint="stop it, make the backup and the export of one moment, then start it again",
            )
    finally:
        target.close()
    with closing(source_of(reading(config, progress))) as source:
        cluster = source.identity()
    return {
        "format": FORMAT,
        "changefeed": config.changefeed,
        "kafka_cluster": cluster,
        "checkpoint_ts": progress.checkpoint_ts,
        "offsets": progress.offsets(),
        "state": progress.state(),
        "definitions": definitions,
        "quarantine": aside,
    }


@dataclass(frozen=True, slots=True)
class Export:
    """What an export holds: the progress, what is kept of definitions, the states of messages that were quarantined."""

    progress: Progress
    definitions: list[Definition]
    aside: dict[Position, QuarantineState]


def read_export(config: Config, value: Any) -> Export:
    """Read an export. Raises ConfigError if it is none, or another changefeed's or cluster's."""
    known = value.get("format") if isinstance(value, dict) else None
    if known != FORMAT:
        raise ConfigError(
            f"this is no export of format {FORMAT}: it says {known!r}", hint="`reconciler progress export CONFIG`"
        )
    if value["changefeed"] != config.changefeed:
        raise ConfigError(f"the export is of changefeed {value['changefeed']!r}, not of {config.changefeed!r}")
    try:
        progress = Progress.restored(value["checkpoint_ts"], value["offsets"], value["state"])
        definitions = [(str(database), str(name), str(text)) for database, name, text in value["definitions"]]
        aside = {Position(*place): QuarantineState(state) for *place, state in value["quarantine"]}
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"the export is damaged: {type(error).__name__} {error}") from error
    return Export(as_read_here(config, progress, str(value["kafka_cluster"])), definitions, aside)


def import_progress(config: Config, export: Export) -> None:
    """Say that the target is in the state of this export."""
    with opened(config) as target:
        refuse_living_leader(config, target)
        stored = target.stored(config.changefeed)
        known = None if stored is None else stored.progress
        if known is not None:  # of tables that were restored since the decision is not true
            _refuse_under_way(config, target, known, intents=False)
        again = _retried(config, target, export.progress.checkpoint_ts)
        # what was decided since counts no more: the rows are as they were
        then = tuple(
            (one.position, export.aside[one.position], "as it was in an export")
            for one in target.quarantine.all(config.changefeed)
            if export.aside.get(one.position, one.state) is not one.state
        )
        kept = (_places_of(config, export.progress, *filter(None, [known])), export.definitions)
        aside = Changes(decided=(*again.decided, *then))
        target.replace_progress(config.changefeed, export.progress, known, aside, kept)


def _places_of(config: Config, *known: Progress) -> Wanted:
    """Which of the target's tables are this changefeed's; a database itself has no name of a table."""
    accepts = read_filter(config.filter).tables
    if not config.sink.dispatchers:
        return lambda database, table: accepts(database, table) if table else accepts.accepts_database(database)
    own = {place.folded for one in known for name, place in one.sources.items() if accepts(*name)}
    return lambda database, table: TableName(database, table).folded in own


def reset_progress(config: Config) -> None:
    """Forget the progress: the next run begins as a new changefeed, at `start-ts`."""
    with opened(config) as target:
        known = stored_of(config, target).progress
        refuse_living_leader(config, target)
        start = CheckpointTs(config.source.start_ts)
        filters, routes = read_filter(config.filter), read_routes(config.sink)
        first = Progress.first(start, filters.digest, uuid4().hex, routes.digest)
        first = replace(first, kept_keys=known.kept_keys)  # the tables stay as they are
        # of whatever was held nothing is known any more: its offset may be another message's in a topic created again
        held = [one.position for one in target.quarantine.all(config.changefeed) if one.state is QuarantineState.HELD]
        aside = Changes(decided=tuple((p, QuarantineState.RETRIED, "the progress was reset") for p in held))
        target.replace_progress(config.changefeed, first, known, aside, _left_known(config, target, known, start))


def _left_known(
    config: Config, target: Target, known: Progress, start: CheckpointTs
) -> tuple[Wanted, list[Definition]] | None:
    """What stays of the kept definitions: all if no DDL can be missed, else those of views, which are the target's."""
    if start == known.checkpoint_ts:
        return None
    is_place = _places_of(config, known)
    found = target.definitions.of(lambda _database, _table: True)
    own = [one for one in found if is_place(*one[:2]) or changefeed_of(one[-1]) == config.changefeed]
    names = {one[:2] for one in own}
    return lambda *name: name in names, [one for one in own if is_of_view(one[-1])]


def rewind_progress(config: Config, to: int, slack_s: float) -> Progress:
    """Go back to an earlier commitTs: what lies above it is applied once more, as one unit, by the next run.

    `slack_s`: how far the clocks of upstream and Kafka may differ, in seconds. Raises ConfigError or InputError.
    """
    if config.source.storage:
        raise ConfigError("files can't be rewound to an earlier commitTs", where=config.source.storage, hint=_DUMP)
    with opened(config) as target, sourced(config) as source:
        stored = stored_of(config, target).progress
        if stored.archived:
            raise ConfigError("files can't be rewound to an earlier commitTs", where=stored.archived, hint=_DUMP)
        refuse_living_leader(config, target)
        _refuse_under_way(config, target, stored)
        check_bounds(stored, to)
        probe = source.probe(stored)
        progress = replace(added(stored, probe), topics=probe.topics)
        log = target.ddl_log.latest(config.changefeed, KEPT)
        check_ddls(log, to, reached(progress))
        check_keys(stored, target.catalog(), to, reached(progress))
        check_keyless(config, target)
        check_gone(config, progress, probe)
        check_before_listed(source, stored, probe, to)
        spans = _spans(source, progress, to, slack_s)
        doubted = doubted_marks(progress, config)
        if not config.source.watermark_from:
            check_caught_up(progress, spans, doubted, source.marks_before)
        after = rewound(progress, CheckpointTs(to), spans, uuid4().hex, doubted)
        target.replace_progress(config.changefeed, after, stored, _retried(config, target, to))
        return after


def _retried(config: Config, target: Target, above: int) -> Changes:
    """Messages that are held and will be read again, as events above a commitTs: they are tried again.

    Of one whose commitTs was not known, since it could not be decoded, it is looked up whether it can be now.
    """
    held = [one for one in target.quarantine.all(config.changefeed) if one.state is QuarantineState.HELD]
    again = (one.position for one in held if _commit_ts(config, target, one) > above)
    return Changes(
        decided=tuple((p, QuarantineState.RETRIED, f"everything above {above} was asked for again") for p in again)
    )


def _commit_ts(config: Config, target: Target, one: Quarantined) -> int:
    """A message's commitTs, as far as it is a row event that can be read; else 0."""
    if one.commit_ts is not None:
        return one.commit_ts
    found = target.quarantine.message(config.changefeed, one.position)
    if found is None:
        return 0
    try:
        (value,) = format_of(config).shown(found.value, one.position, config.limits.message_bytes)
        message = canal_json.decode(value, one.position)
        canal_json.check_row(message, one.position)
    except InputError:
        return 0
    return message.tidb.commit_ts if message.tidb is not None else 0


def _refuse_under_way(config: Config, target: Target, progress: Progress, *, intents: bool = True) -> None:
    """Raise ConfigError for a DDL that an operator decided about, or a run began: the target may be behind it."""
    for line in target.ddl_log.under_way(config.changefeed):
        if line.commit_ts >= progress.checkpoint_ts and (intents or line.state != DdlState.INTENT.value):
            raise ConfigError(
                f"the DDL at {line.commit_ts} was begun, or decided about, and is not settled: {line.sql[:200]}",
                where=target.name,
                hint="`reconciler run CONFIG --once` settles it, with the config that was used until now; if the tables"
                " were restored since, `reconciler progress reset CONFIG --yes` forgets it",
            )


def _spans(source: Source, progress: Progress, to: int, slack_s: float) -> dict[Partition, tuple[int, int]]:
    """Where each partition begins to hold what is above a commitTs, and where it ends.

    No message is older than its transaction, so what lies before the first message of that time is not above it, as far
    as the clocks agree. A partition that nobody has read is read from its beginning. Raises InputError where retention
    has deleted messages that may be above it.
    """
    there = [p for topic in source.listed() for p in topic.partitions if p in progress.partitions]
    since = source.control.offsets_since(there, max(0, physical_ms(to) - int(slack_s * 1000)))
    begins, ends = source.control.begins(there), source.control.ends(there)
    spans = {}
    for p in there:
        found = since[p]
        start = ends[p] if found is None else found
        if progress.partitions[p].is_unread:
            start = begins[p]
        if start == begins[p] > 0:
            raise InputError(
                f"retention may have deleted messages above commitTs {to} ({utc_text(to)} UTC): the log begins at"
                f" offset {begins[p]}",
                where=str(p),
                hint="rewind to a later commitTs, or restore a backup with its progress (`reconciler help recovery`)",
            )
        spans[p] = (start, retired_end(progress, p, start, ends[p]))
    _check_clocks(source, {p: (begins[p], start) for p, (start, _) in spans.items()}, to, slack_s)
    return spans


def _check_clocks(source: Source, before: dict[Partition, tuple[int, int]], to: int, slack_s: float) -> None:
    """Raise InputError if a watermark tells that messages above `to` may lie before where reading would begin."""
    for p, mark in sorted(source.marks_before(before).items()):
        if mark > to:
            raise InputError(
                f"the clocks of upstream and Kafka differ by more than {slack_s:g} s: a watermark of"
                f" {utc_text(mark)} UTC lies before the first message that is newer than {utc_text(to)} UTC",
                where=f"{p} offset={before[p][1]}",
                hint="use --slack with more seconds",
            )
