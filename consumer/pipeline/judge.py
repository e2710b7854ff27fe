"""Judges a window that was read: repetitions are proven, and what must not be applied is refused, before any write.

So are messages that came to a topic after an operator had retired it: its word was that none would (R6, R8). A retired
topic holds nothing back, so the checkpoint may have passed a row before it was sent. What lay in the topic when it was
retired is applied as the others' watermarks allow; what came later is refused, whatever its commitTs is. Only
repetitions that the ledger proves are none of that.
"""

from collections.abc import Iterator, Sequence

from consumer.ddl.avro_names import refused_names
from consumer.ddl.check_columns import refused_spellings
from consumer.ddl.routing import with_rows
from consumer.ddl.table_changes import Altered
from consumer.filters.columns import ColumnRules
from consumer.filters.promoted_keys import NONE_KEPT, PromotedKeys
from consumer.pipeline.advance import advanced, refused_new_topics, refused_tables
from consumer.pipeline.duplicates import check_contents, duplicates_in, judged, repeated_in, suspicious
from consumer.pipeline.read import WindowRead, read_spec
from consumer.pipeline.session import Session
from consumer.redis.ledger import Ledger
from consumer.source.offer import added
from consumer.tasks.report import Report, refused_rows
from ordering.ddl_barrier import is_executed
from ordering.errors import InputError
from ordering.kept_keys import KeptKeys, lost_by
from ordering.progress import Progress, TopicProgress
from sinks.rows.schema import Catalog

_HINT = (
    "rows of its tables may be missing in the target: compare them with the upstream (`reconciler verify`). If TiCDC"
    " sends to it again, `reconciler topic return CONFIG TOPIC` lets it count again; else `reconciler topic"
    " retire CONFIG TOPIC` once more accepts what lies in it now"
)


def judged_progress(session: Session, read: WindowRead) -> Progress:
    """The progress as it is after the window, its DDLs apart. Raises ReconcilerError for what is refused."""
    window, reports = read.window, read.reports
    session.source.check_same_log(reports, session.progress.topics)
    session.quarantine.met(reports)
    know_places(session, reports)
    catalog = session.target.catalog()
    session.source.check_uncompacted(reports)
    check_retired(reports, session.progress, session.ledger)
    refused_rows(reports)
    refused_columns(reports, session.routes.columns)
    lost = lost_by(session.progress.kept_keys, session.progress.checkpoint_ts)
    refused_keys(reports, catalog, session.promoted, lost)
    if session.config.source.protocol == "avro":
        refused_names(reports, catalog)
    refused_tables(reports, catalog, session.config.source.time_zone)
    if session.config.source.protocol == "debezium":
        refused_spellings(reports, catalog)
    if not session.source.vouches:
        refused_new_topics(reports, session.progress, session.ledger)
    session.source.check_sent_once(reports)
    session.acting.warn(reports, catalog)
    verdict = judged(reports, session.ledger, lambda: Altered.in_target(session.target, session.config.changefeed))
    if suspects := suspicious(reports):
        check_contents(session.jobs.contents(window.ranges, read_spec(session, window), suspects), suspects)
    if suspects or any(report.unreadable for report in reports):
        session.source.check_same_log(reports, session.progress.topics, ask=True)
    # what is applied once more was counted before
    proven = verdict.proven + (0 if window.rewound else duplicates_in(reports))
    waiting = {ddl.identity for ddl in session.planner.pending(session.progress)}
    found = added(session.progress, session.probe)
    return advanced(found, window, reports, waiting, proven=proven, unproven=verdict.unproven)


def know_places(session: Session, reports: Sequence[Report]) -> None:
    """Note where the tables of a window lie, before anything is judged by that. Raises InputError."""
    if session.routes.rules:
        tables = {
            name: position for report in reports for name, position in {**report.tables, **report.keyless}.items()
        }
        here = session.target.session.catalog()
        session.progress = with_rows(session.progress, session.routes, tables, here)
        session.target.know(session.progress)


def refused_columns(reports: Sequence[Report], columns: ColumnRules) -> None:
    """Raise InputError where what tells a table's rows apart is left out or masked: one would take another's place."""
    for report in reports if columns else ():
        for name, keys in report.handle_keys.items():
            if (rules := columns.of(name)) is not None:
                for key, position in keys.items():
                    rules.check(key, {}, str(position))
        for name, (column, position) in report.blurred.items():
            raise InputError(
                f"sink.column-selectors or sink.column-masks leave out column {column!r} of {name}, or give it a"
                " constant, and the table has no key: rows that differ would be equal, one taken for the other's copy",
                where=str(position),
                hint="give the table a key upstream; mask the column by hash-key; or set output-row-key in TiCDC's"
                " changefeed, for a new topic",
            )


def refused_keys(reports: Sequence[Report], catalog: Catalog, promoted: PromotedKeys, lost: KeptKeys) -> None:
    """Raise TableMismatchError for rows that a key which upstream does not have would take for one."""
    for report in reports:
        for name, position in report.unnamed.items():
            if (table := catalog.get(name)) is not None:
                promoted.check(table, str(position), lost.get(name.folded, NONE_KEPT))


def check_retired(reports: Sequence[Report], progress: Progress, ledger: Ledger) -> None:
    """Raise InputError for events that came to a topic after it was retired."""
    for report in reports:
        if not _is_later(report, progress.topics[report.range.partition.topic]):
            continue
        if facts := list(_news(report, progress, ledger)):
            where = f"{report.range.partition} offset={report.range.start}"
            raise InputError(f"{' and '.join(facts)} arrived in a retired topic", where=where, hint=_HINT)


def _is_later(report: Report, topic: TopicProgress) -> bool:
    """Whether a range holds only what came later: ranges are cut where the log ended (`consumer.source.probe`)."""
    return topic.retired and report.range.start >= topic.retired_to.get(report.range.partition.partition, 0)


def _news(report: Report, progress: Progress, ledger: Ledger) -> Iterator[str]:
    if report.fingerprints or report.above or report.keyless or report.unfit is not None:
        yield "rows above the checkpoint"
    verdict = ledger.judge(repeated_in(report))
    if verdict.unproven or verdict.late or report.unjudged:
        yield "rows at or below the checkpoint, which nothing proves to be repetitions,"
    if report.earlier_ddl or not all(is_executed(d.identity, d.commit_ts, progress.executed) for d in report.ddls):
        yield "a DDL"
