"""`reconciler check`: tries config, Kafka, Redis and the target one after the other, and changes nothing."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consumer.codec import canal_json
from consumer.config.changefeed_filter import read_filter, told
from consumer.config.lossy import told_of_losses
from consumer.config.model import Config
from consumer.config.zone import told_of_repeats
from consumer.native import chosen
from consumer.native.kafka_client import kafka_library
from consumer.operate.files import looked_at_files
from consumer.source.offer import Probe
from consumer.source.probe import Source
from consumer.spark.master import check_master
from consumer.wiring import archive_of, bodies_of, format_of, registry_of, target_of
from ordering.errors import BeginningLostError, ConfigError, InputError, ReconcilerError, SourceError, TargetError
from ordering.events import Position
from ordering.progress import Progress
from ordering.sources.archive import taken_up
from ordering.timestamps import LEAST_TSO, utc_text
from sinks.rows.schema import Catalog
from sinks.uri import parse_target_uri
from sinks.wording import plural

_MOST_LOOKED_AT = 20
"""Topics in which messages are looked at."""
_BEGINS = re.compile(r"(?<=\n)(?=\S)")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the check: what was tried, and what came of it."""

    subject: str
    text: str
    error: ReconcilerError | None = None
    is_whole: bool = True
    """False: a run goes on without it, but something is missing."""

    def line(self) -> str:
        """For people: lines of a text that a server sent are indented, so that none looks like a line of ours."""
        mark = "FAIL" if self.error else "ok" if self.is_whole else "warn"
        return f"{mark:<4} {self.subject}: {_BEGINS.sub('     ', self.text)}"

    def as_json(self) -> dict[str, Any]:
        """For programs: `exit_code` is what `check` would end with if this were the first failure."""
        fact, where, hint = (self.error.fact, self.error.where, self.error.hint) if self.error else (self.text, "", "")
        code = self.error.exit_code if self.error else 0
        return {
            "subject": self.subject, "ok": not code, "fact": fact, "where": where, "hint": hint, "exit_code": code
        }  # fmt: skip


def findings(config: Config) -> Iterator[Finding]:
    """Try everything; a failure does not keep the rest from being tried."""
    yield Finding("config", f"changefeed {config.changefeed}, consistency {config.target.consistency}")
    if config.source.start_ts:
        yield _start(config.source.start_ts)
    yield from _tried("target", lambda: _target(config))
    yield from _tried("filter", lambda: _filter(config))
    yield from _tried("tables", lambda: _tables(config))
    yield _core(config)
    yield from _tried("spark", lambda: [_spark(config)])
    if config.source.storage:
        yield from _tried("storage", lambda: looked_at_files(config, _progress(config)))
    else:
        yield from _tried("kafka", lambda: _kafka(config))
    if config.source.protocol == "avro":
        yield from _tried("schema registry", lambda: [registry_of(config).check()])
    if config.source.archive:
        yield from _tried("archive", lambda: _archive(config))
    upstream = bodies_of(config).upstream
    if upstream is not None:
        yield from _tried("upstream", lambda: [upstream.check()])
    if lost := told_of_losses(config.source):
        yield Finding("protocol", lost, is_whole=False)
    if told_there := told_of_repeats(config.source.time_zone):
        yield Finding("time zone", told_there, is_whole=False)
    yield _redis(config)
    if config.proof.enabled:
        yield _proof(config)


def _start(start_ts: int) -> Finding:
    """The moment that `start-ts` names; what is no TSO but a time or a date names one in 1970."""
    when = f"{start_ts} is {utc_text(start_ts)} UTC"
    if start_ts >= LEAST_TSO:
        return Finding("start-ts", when)
    hint = "a TSO is an integer such as 461234567890123456: Pos in the dump's metadata, or SHOW MASTER STATUS of TiDB"
    return Finding("start-ts", f"{when}, before TiDB was written\n  hint: {hint}", is_whole=False)


def _proof(config: Config) -> Finding:
    if config.filter.event_filters:
        return Finding("proof", "proof.enabled does nothing: event filters leave out events", is_whole=False)
    section = config.proof
    pace = f"at most {section.rows_per_second:,} rows a second, each table every {section.interval_seconds:g} s"
    return Finding("proof", f"tables are proven in the background, {pace}")


def _tried(subject: str, look: Callable[[], list[str]]) -> Iterator[Finding]:
    try:
        for text in look():
            yield Finding(subject, text)
    except ReconcilerError as error:
        yield Finding(subject, str(error), error)


def _target(config: Config) -> list[str]:
    if config.target.uri.startswith("sqlite:") and not config.spark.master.startswith("local"):
        _refuse_far_tasks(config)
    with closing(target_of(config)) as target:
        return [*_relative(config), *target.check()]


def _relative(config: Config) -> list[str]:
    """Says where files go whose place depends on where the command is started."""
    uri = config.target.uri
    if not uri.startswith("sqlite:") or uri.startswith("sqlite:////"):
        return []
    path = Path(parse_target_uri(uri).path)
    return [f"{uri} is relative: from here it is {path.absolute()}; sqlite:///{path.absolute()} is that from anywhere"]


def _refuse_far_tasks(config: Config) -> None:
    """SQLite's files are on this machine; in `row` consistency tasks write them."""
    if config.target.consistency == "row":
        raise ConfigError(
            f"consistency 'row' lets Spark's tasks write, and spark.master = {config.spark.master} runs them elsewhere",
            where=config.target.uri,
            hint='set consistency = "snapshot", or spark.master = "local[*]"',
        )


def _filter(config: Config) -> list[str]:
    try:
        catalog = _catalog(config)
    except TargetError:
        catalog = None  # what is wrong with the target is told in its own line
    return told(read_filter(config.filter), catalog)


def _tables(config: Config) -> list[str]:
    """Whether the tables that are there can be written; TargetError for the first that can't."""
    try:
        catalog = _catalog(config)
    except TargetError:
        return []  # what is wrong with the target is told in its own line
    accepts = read_filter(config.filter).tables
    wanted = [schema for name, schema in sorted(catalog.tables.items()) if accepts(*name)] if catalog else []
    for schema in wanted:
        schema.check_fit()
    if not wanted:
        return ["the target has none of them yet; DDLs of the topics, or a dump, create them"]
    return [f"{len(wanted)} of the target's tables {'is' if len(wanted) == 1 else 'are'} replicated"]


def _catalog(config: Config) -> Catalog | None:
    """The target's tables; None before the first run into SQLite, for to open its files is to make them."""
    target = target_of(config)
    try:
        stored = target.stored(config.changefeed)  # it tells which table of upstream is which one here
        return None if stored is None and config.target.uri.startswith("sqlite:") else target.catalog()
    finally:
        target.close()


def _core(config: Config) -> Finding:
    """What reads on this machine; executors elsewhere tell in their reports."""
    try:
        found = chosen(config.spark.native)
    except ConfigError as error:
        return Finding("core", str(error), error)
    if found.core is None:
        return Finding("core", f"tasks read in Python: {found.why}", is_whole=not found.is_broken)
    through = kafka_library().why
    text = "tasks read with the compiled core" + (f", messages come through Python: {through}" if through else "")
    return Finding("core", text, is_whole=not through)


def _spark(config: Config) -> str:
    """Whether its master answers; that Java starts is tried by a run alone. Raises ClusterUnreachableError."""
    check_master(config.spark.master)
    return f"{config.spark.master}" + (" answers" if config.spark.master.startswith("spark://") else "")


def _kafka(config: Config) -> list[str]:
    """What the topics hold. Raises SourceError and InputError; what is wrong with the target has its own line."""
    with closing(Source.of(config)) as source:
        progress = _progress(config)
        try:
            probe = source.probe(taken_up(progress, because="", ledger="") if progress.archived else progress)
        except BeginningLostError as lost:
            if not config.source.archive:
                raise
            return [f"{lost.fact} ({lost.where}); the archive is read instead"]
        if not probe.topics:
            raise InputError(
                f"no topic matches {', '.join(config.source.topics)}",
                where=f"Kafka at {config.source.bootstrap_servers}",
                hint='the expression has to match a whole name: "~cdc_.*", not "~cdc_"; or TiCDC has made no topic yet',
            )
        _look_at_messages(source, probe)
    held = "" if probe.resolved.ts else "; no watermark yet in " + ", ".join(map(str, probe.resolved.held_back_by))
    return [f"{plural(len(probe.topics), 'topic')}, {plural(len(probe.partitions), 'partition')}{held}"]


def _archive(config: Config) -> list[str]:
    """What the archive holds above the checkpoint. Raises SourceError and InputError."""
    progress = _progress(config)
    if not progress.archived:
        progress = taken_up(progress, because=config.source.archive, ledger="")
    return looked_at_files(archive_of(config), progress)


def _progress(config: Config) -> Progress:
    """How far the target is; from the beginning where it can't say."""
    try:
        with closing(target_of(config)) as target:
            stored = target.stored(config.changefeed)
    except TargetError:
        return Progress()
    return stored.progress if stored else Progress()


def _look_at_messages(source: Source, probe: Probe) -> None:
    """Look at the next and the last message of each topic. Raises InputError for one that can't be read."""
    waiting = {p: at for p, at in probe.partitions.items() if at.end > at.progress.start}
    a_partition = {p.topic: (p, at) for p, at in sorted(waiting.items())}
    for p, at in list(a_partition.values())[:_MOST_LOOKED_AT]:
        for offset in sorted({at.progress.start, at.end - 1}):
            position = Position(p.topic, p.partition, offset)
            try:
                kept = source.message(position)
            except SourceError:
                continue  # the end of a transaction is no message
            told = format_of(source.config)
            content = told.content(kept.key, kept.value)
            for value in told.shown(content, position, source.config.limits.message_bytes):
                canal_json.decode(value, position)


def _redis(config: Config) -> Finding:
    if not config.redis.uri:
        return Finding(
            "redis", "absent by configuration: repetitions of what earlier windows applied are dropped unproven"
        )
    import redis  # noqa: PLC0415 these take long to load

    from consumer.redis.client import UNUSABLE  # noqa: PLC0415
    from consumer.redis.ledger_connection import LedgerConnection  # noqa: PLC0415

    ledger = LedgerConnection(config.redis.uri, config.changefeed, "check")
    try:
        ledger.ping()
    except UNUSABLE as error:
        refused = isinstance(error, redis.AuthenticationError | redis.ResponseError)
        what = f"Redis refuses us: {error}" if refused else f"Redis is out of reach: {error}"
        hint = 'check redis.uri ("": no Redis); meanwhile a run goes on without Redis, and drops duplicates unproven'
        return Finding("redis", f"{what}\n  hint: {hint}", is_whole=False)
    finally:
        ledger.close()
    return Finding("redis", "connected")
