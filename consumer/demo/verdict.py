"""Judges a performance: what was sent, applied, dropped and seen, and whether all of it is as promised."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from consumer.demo.compare import Compared
from consumer.demo.live_upstream import Tally
from ordering.progress import Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """What is known at the end."""

    consistency: str
    tables: Sequence[Compared]
    tally: Tally
    counts: Counts
    looks: int
    wrong: Sequence[int]
    kills: int
    exit_code: int | None
    seconds: float

    def faults(self) -> list[str]:
        """Every promise that was not kept."""
        return list(self._faults())

    def _faults(self) -> Iterator[str]:
        yield from (one.difference() for one in self.tables if not one.equal)
        if not self.looks:
            yield "the reader never looked"
        if self.wrong:
            yield f"the reader saw wrong totals: {self.wrong[:3]}"
        if self.counts.events != self.tally.rows:
            yield f"{self.tally.rows} row messages were sent, {self.counts.events} taken in"
        if self.counts.duplicates != self.tally.repeats:
            yield f"{self.tally.repeats} repeats were sent, {self.counts.duplicates} dropped"
        if self.exit_code != 0:
            yield f"the reconciler ended with code {self.exit_code} after SIGTERM"

    def facts(self) -> list[tuple[str, str]]:
        """The figures, named."""
        tally, counts = self.tally, self.counts
        proven = f"{counts.duplicates_proven:,} proven by the ledger or by the window"
        return [
            ("events", f"{counts.events:,} row messages taken in; {tally.rows:,} were sent"),
            ("duplicates", f"{counts.duplicates:,} dropped, {proven}; {tally.repeats:,} were sent"),
            ("applied", f"{counts.rows_written:,} rows written in {counts.windows:,} windows, {counts.ddls} DDLs"),
            ("upstream", f"TiCDC restarted {tally.restarts} times; {tally.watermarks:,} watermarks"),
            ("reconciler", f"kills {self.kills}, exit code at the end {self.exit_code}"),
            ("reader", f"looks {self.looks:,}, wrong totals {len(self.wrong)}"),
            ("took", f"{self.seconds:.0f} s"),
        ]
