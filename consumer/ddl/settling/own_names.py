"""A DDL by the target's names, where routes rename tables; and what is known of places and merged tables after it."""

from dataclasses import dataclass, replace

import structlog

from consumer.config.routes import Routes
from consumer.ddl.guard import reading
from consumer.ddl.merged.shards import RoutedDdl
from consumer.ddl.routing import after, left, passed_over, routed, shards
from ordering.errors import ConfigError, InputError
from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from sinks.bookkeeping.ddl_log import DdlRecord
from sinks.ddl.kept_definitions import NOTHING_HERE, PlacedDdl, placed
from sinks.rows.routed import NameMap
from sinks.target import Target

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class OwnNames:
    """Names of one changefeed."""

    routes: Routes
    target: Target

    def routed(self, ddl: DdlEvent, progress: Progress, *, torn: bool, by_hand: bool = False) -> RoutedDdl:
        """The DDL by the target's names. `torn`: it may have run; `by_hand`: somebody has made its change.

        Raises InputError for one that would touch another table's place, or can't be said.
        """
        if not self.routes.rules:
            return RoutedDdl(ddl, progress.sources)
        with reading(ddl):
            return routed(ddl, shards(self.routes, progress, self.target, torn=torn), by_hand=by_hand)

    def passed_over(self, ddl: DdlEvent, progress: Progress) -> Progress:
        """The progress that knows what upstream's shards have after a DDL that the target leaves out."""
        if not self.routes.columns.origins:
            return progress
        return replace(progress, merged=passed_over(ddl, shards(self.routes, progress, self.target)))

    def of_nothing_done(self, ddl: DdlEvent, progress: Progress) -> PlacedDdl:
        """A DDL of which nothing is executed; without a statement where it can't be said."""
        try:
            if not self.routes.rules:
                return placed(ddl)
            found = self.routed(ddl, progress, torn=True, by_hand=True)
        except (InputError, ConfigError):  # an operator may skip what can't be read, or what case alone leaves out
            return self.place_alone(ddl, progress)
        return here(found)

    def made_by_hand(self, ddl: DdlEvent, line: DdlRecord, progress: Progress) -> tuple[DdlRecord, Progress]:
        """Its line, and the progress that knows of it; of what can't be said, what it removes."""
        try:
            found = self.routed(ddl, progress, torn=True, by_hand=True)
        except InputError as error:
            log.warning("a DDL that was made by hand has no form by the target's names", because=str(error))
            line = replace(line, **self.place_alone(ddl, progress)._asdict())
            return line, replace(progress, sources=left(ddl, progress.sources))
        return replace(line, **here(found)._asdict()), after(progress, found)

    def place_alone(self, ddl: DdlEvent, progress: Progress) -> PlacedDdl:
        """Where its table is, without a statement."""
        name = TableName(ddl.database, ddl.table)
        names = NameMap(self.routes, progress.sources, self.routes.columns.origins)
        return PlacedDdl("", *(names.place(name) if name.table else name))


def here(found: RoutedDdl) -> PlacedDdl:
    """A DDL by the target's names; of one that the routes leave out, or about a shard alone, there is none."""
    of_a_shard = found.merged is not None and not found.ddl.routed
    return NOTHING_HERE if of_a_shard or found.because else placed(found.ddl)
