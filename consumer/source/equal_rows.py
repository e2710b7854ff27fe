"""Refuses equal rows without a key that may be one row sent twice (`ordering.rows.equal_rows`): neither is a guess."""

from collections.abc import Iterable

from consumer.tasks.report import Report
from ordering.errors import InputError
from ordering.events import Position
from ordering.rows.equal_rows import Batches, doubts
from ordering.timestamps import utc_text

_HINT = (
    "TiCDC's producer sends a request again whose answer was lost, and a restart may begin with such rows. With"
    " `output-row-key` in the changefeed rows can be told apart, and with a primary key. To count them as so many rows,"
    ' set source.equal-rows = "count" for one run, then compare with the upstream (`reconciler help keyless-tables`)'
)


def check_sent_once(reports: Iterable[Report], batches: Batches) -> None:
    """Raise InputError for equal rows that nothing proves to be several rows."""
    found = [(report.range.partition, equal) for report in reports for equal in report.equal_rows]
    for doubt in doubts(found, batches):
        raise InputError(
            f"rows of table {doubt.table}, which has no key, come again within one commitTs ({doubt.commit_ts},"
            f" {utc_text(doubt.commit_ts)} UTC) in another batch of Kafka: they may be repetitions, or equal rows",
            where=str(Position(*doubt.partition, doubt.offset)),
            hint=_HINT,
        )
