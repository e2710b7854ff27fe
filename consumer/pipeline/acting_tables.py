"""Warns of what the target does by itself when rows are written: triggers, columns that it computes."""

from collections.abc import Iterable, Iterator

import structlog

from consumer.tasks.report import Report
from sinks.rows.schema import Catalog, computed

log = structlog.get_logger()


class ActingTables:
    """Says each thing once in a run, of tables that rows come for; so again after a restart or a takeover."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def warn(self, reports: Iterable[Report], catalog: Catalog) -> None:
        """Look at the tables of a window, by the catalog as it is since the last DDL."""
        for report in reports:
            for fact in (*_acting(report, catalog), *_computed(report, catalog)):
                if fact not in self._said:
                    self._said.add(fact)
                    log.warning("the target acts by itself on what is written", what=fact)


def _acting(report: Report, catalog: Catalog) -> Iterator[str]:
    for name in report.tables:
        schema = catalog.get(name)
        yield from schema.acting if schema else ()


def _computed(report: Report, catalog: Catalog) -> Iterator[str]:
    """Columns that upstream sends and the target computes: upstream never sends VIRTUAL ones."""
    for table, _, types in report.types:
        schema = catalog.get(table)
        for sent in types:
            column = schema.column(sent) if schema else None
            if column is not None and column.generated and (column.virtual or not catalog.computes_alike):
                yield computed(table, column.name)
