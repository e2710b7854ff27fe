"""Messages that came to a topic after an operator had retired it: its word was that none would (R6, R8).

A retired topic holds nothing back, so the checkpoint may have passed a row before it was sent. What lay in the topic
when it was retired is applied as the others' watermarks allow; what came later is refused, whatever its commitTs is.
Only repetitions that the ledger proves are none of that.
"""

from collections.abc import Iterator, Sequence

from consumer.evidence import repeated_in
from consumer.ledger import Ledger
from consumer.report import Report
from ordering.errors import InputError
from ordering.progress import Progress, TopicProgress

_HINT = (
    "rows of its tables may be missing in the target: compare them with the upstream (`reconciler verify`). If TiCDC"
    " sends to it again, `reconciler topic retire CONFIG TOPIC --undo` lets it count again; else `reconciler topic"
    " retire CONFIG TOPIC` once more accepts what lies in it now"
)


def check_retired(reports: Sequence[Report], progress: Progress, ledger: Ledger) -> None:
    """Raise InputError for events that came to a topic after it was retired."""
    for report in reports:
        if not _is_later(report, progress.topics[report.range.partition.topic]):
            continue
        if facts := list(_news(report, progress, ledger)):
            where = f"{report.range.partition} offset={report.range.start}"
            raise InputError(f"{' and '.join(facts)} came to a topic that is retired", where=where, hint=_HINT)


def _is_later(report: Report, topic: TopicProgress) -> bool:
    """Whether a range holds only what came later: ranges are cut where the log ended (`consumer.source`)."""
    return topic.retired and report.range.start >= topic.retired_to.get(report.range.partition.partition, 0)


def _news(report: Report, progress: Progress, ledger: Ledger) -> Iterator[str]:
    if report.fingerprints or report.above or report.keyless or report.unfit is not None:
        yield "rows above the checkpoint"
    verdict = ledger.judge(repeated_in(report))
    if verdict.unproven or verdict.late or report.unjudged:
        yield "rows at or below the checkpoint, which nothing proves to be repetitions,"
    if report.earlier_ddl or any(ddl.identity not in progress.executed for ddl in report.ddls):
        yield "a DDL"
