"""Reads a window as a whole: the job over its ranges, once more with a nearer end where a DDL or too many rows are."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from consumer.ddl.policy import understood
from consumer.formats.sent_schema import SchemaIdentity
from consumer.pipeline.advance import counted, kept_reports
from consumer.pipeline.buckets import BucketPlan
from consumer.pipeline.session import Session
from consumer.source.awaited_schemas import ReadAgain
from consumer.source.clock import ignored_marks, latest_believed
from consumer.tasks.jobs import Job, Outcome, Waiting, reported_apart, reported_first
from consumer.tasks.order import OrderTask
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import RawDdl, Report
from ordering.planner import Seen
from ordering.rows.bucketing import Spread
from ordering.timestamps import ResolvedTs
from ordering.window import Window, check_whole
from sinks.rows.routed import by_table
from sinks.rows.schema import handle_key_of

SMALLEST_RANGE = 50_000
"""Events that a task reads at least, where a range is divided."""


@dataclass(frozen=True, slots=True)
class WindowRead:
    """A window that was read, up to its final end: what its ranges hold, and where its rows are."""

    window: Window
    reports: list[Report]
    rows: Iterator[Outcome] | Waiting
    """They come to the driver, or tasks are to write them."""
    order: OrderTask
    """How its rows are ordered and encoded."""


def read_whole(session: Session, window: Window, *, once: bool = False) -> WindowRead | None:
    """Run the window's job until its end agrees with what was read; `once`: None where it has to end before."""
    judged = session.drifting.judges(window, session.progress, session.quarantine.marks)
    order = order_task(session, judged=judged)
    spread = _spread(session, window)
    while True:
        spec = read_spec(session, window, spread)
        reports, rows = _run(session, spec, order)
        check_whole(window.ranges, [report.range for report in reports])
        new = session.schemas.learn(schema for report in reports for schema in report.schemas)
        reports = counted(kept_reports(reports), session.progress)
        try:
            nearer = _nearer(session, window, reports, new)
        except ReadAgain:
            order = order_task(session, judged=judged)
            continue
        if nearer is not None:
            if once:
                return None
            window = replace(window, high=nearer)
            spread = _spread(session, window)
            continue
        better = spread and spreading(session).better(spread, [report.histogram for report in reports])
        if better is None:
            return WindowRead(window, reports, rows, order)
        spread = better


def order_task(session: Session, *, judged: bool) -> OrderTask:
    """The second stage, by the tables as they are now. `judged`: whether rows tell of drift."""
    target = session.target
    return OrderTask(
        target.catalog().tables,
        target.encoder,
        session.bodies,
        whole_transactions=False,
        judged=judged,
        chunk_rows=session.tuning.chunk_rows,
        native=session.config.spark.native,
    )


def read_spec(session: Session, window: Window, spread: Spread | None = None) -> ReadSpec:
    """What reading tasks have to know; `spread` says how whole transactions are spread over buckets."""
    catalog, mode = session.target.catalog(), session.mode
    buckets = spread.buckets if spread else spreading(session).buckets(expected_events(session, window))
    return ReadSpec(
        window=window,
        handle_keys=by_table(catalog.tables, handle_key_of),
        accepts=session.filter.tables.of_message,
        ignored=session.filter.for_rows(catalog),
        buckets=max(2, buckets) if mode.begun else buckets,
        run_digits=spreading(session).run_digits,
        message_bytes=session.config.limits.message_bytes,
        spread=spread,
        force_replicate=session.config.filter.force_replicate,
        marks=session.quarantine.marks,
        native=session.config.spark.native,
        format=session.schemas.format,
        tuning=session.tuning,
        smallest_range=max(1, int(SMALLEST_RANGE / session.source.events_a_message)),
        ignored_marks=ignored_marks(session.config),
        latest=latest_believed(session.config.limits),
    )


def expected_events(session: Session, window: Window) -> int:
    """About how many events the window will read."""
    return int(session.planner.expected(window) * session.source.events_a_message)


def _job(session: Session, spec: ReadSpec) -> Job:
    """The job that reads what a spec says: one that was begun ahead, if it does just that."""
    ahead = session.ahead
    if ahead is not None and ahead.spec == spec:
        session.ahead = None
        return ahead.job
    session.drop_ahead()
    return session.jobs.job(spec.window.ranges, spec)


def _run(session: Session, spec: ReadSpec, order: OrderTask) -> tuple[list[Report], Iterator[Outcome] | Waiting]:
    known = session.source.reports(spec)
    if known is not None:
        return known, iter(())
    job = _job(session, spec)
    doubtful = None if spec.window.to_end or spec.window == session.progress.window else spec.window
    order = replace(order, whole_transactions=spec.whole_transactions, doubtful=doubtful)
    if spec.buckets == 1:
        return reported_first(job, order)
    return reported_apart(job, order, by_tasks=session.mode.by_tasks)


def spreading(session: Session) -> BucketPlan:
    """How to spread the rows of its windows, by how large its messages have been."""
    sizes = session.source.average_bytes.values()
    return BucketPlan(session.jobs.cores, sum(sizes) / len(sizes) if sizes else 1.0, session.tuning)


def _spread(session: Session, window: Window) -> Spread | None:
    """How whole transactions are spread over buckets; None where only net effects count."""
    if session.mode.net:
        return None
    return spreading(session).by_commit(window, expected_events(session, window), session.planner.histograms(window))


def _nearer(
    session: Session, window: Window, reports: Sequence[Report], new: Collection[SchemaIdentity]
) -> ResolvedTs | None:
    """Where the window has to end instead: before a DDL, or before a row whose schema is awaited. None if it stands."""
    awaited = session.awaited.end_before(window, session.progress, reports, new)
    tell_source(session, reports)
    tell_ddls(session, (ddl for report in reports for ddl in report.ddls))
    nearer = session.planner.saw(window, seen_in(reports), session.progress)
    return awaited if nearer is None else nearer if awaited is None else min(nearer, awaited)


def tell_source(session: Session, reports: Sequence[Report]) -> None:
    """Tell the source what was seen: watermarks, sizes."""
    source = session.source
    for report in reports:
        partition = report.range.partition
        source.saw(report)
        if report.messages:
            source.average_bytes[partition] = report.size / report.messages


def tell_ddls(session: Session, ddls: Iterable[RawDdl]) -> None:
    """Tell the planner of DDLs that lie in the topics."""
    topics = session.progress.topics
    for raw in ddls:
        if session.planner.knows(raw.identity):
            continue
        topic = topics.get(raw.position.topic)  # none of a DDL that lies beside the rows
        session.planner.met(understood(raw, session.target.catalog(), topic.tables if topic else ()))


def seen_in(reports: Sequence[Report]) -> list[Seen]:
    """What the planner has to know of them."""
    return [Seen(r.range.partition, r.stop, r.released, r.histogram) for r in reports]
