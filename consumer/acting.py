"""Warns of what the target does by itself when rows are written: triggers, columns that it computes."""

from collections.abc import Iterable

import structlog

from consumer.report import Report
from sinks.schema import Catalog

log = structlog.get_logger()


class ActingTables:
    """Says each thing once in a run, of tables that rows come for; so again after a restart or a takeover."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def warn(self, reports: Iterable[Report], catalog: Catalog) -> None:
        """Look at the tables of a window, by the catalog as it is since the last DDL."""
        for name in {name for report in reports for name in report.tables}:
            schema = catalog.get(name)
            for fact in schema.acting if schema else ():
                if fact not in self._said:
                    self._said.add(fact)
                    log.warning("the target acts by itself on what is written", what=fact)
