"""Loads a dump into the target of a new changefeed, and sets its checkpoint to the dump's TSO.

    lead -> files noted -> databases and tables -> rows, file by file -> views -> checkpoint

The progress says from the first step to the last that a load is not done, and `run` refuses to begin meanwhile. Each
step is done once, whatever crashes in between: what has been done is known from the target alone.
"""

import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

import structlog

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.config.routes import read_routes
from consumer.config.zone import check_load_zone, zone_name
from consumer.ddl.check_columns import refused_definition
from consumer.load.checksums import check_sums
from consumer.load.csv_rows import CsvForm
from consumer.load.definitions import refuse_computed
from consumer.load.dump import DataFile, Dump, read_dump
from consumer.load.schemas import LoadOutcome, Schemas, check_key
from consumer.load.workers import Order, Workers, one_by_one
from consumer.load.write_file import FileWork, LoadStep, Observe, observe_nothing
from consumer.operate.progress import refuse_living_leader
from consumer.proof.loaded import keep_base
from consumer.proof.present import SumRules
from consumer.run.heartbeat import Heartbeat, RedisLease
from consumer.wiring import check_is_database, target_of
from ordering.errors import ConfigError, LeadershipLostError, TargetError
from ordering.events import TableName
from ordering.progress import Progress
from ordering.timestamps import BEGINNING, CheckpointTs, utc_text
from sinks.bookkeeping.load_files import Loaded, Mark
from sinks.bookkeeping.progress_rows import Lease
from sinks.rows.spool import Spool
from sinks.target import Target

log = structlog.get_logger()
_SHOWN = 10
_AGAIN = "to start over: drop its tables, `reconciler progress reset CONFIG --yes`, then load (`reconciler help load`)"


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What the command line says. `workers`: processes that write; `time_zone`: of TIMESTAMP, "": the source's.

    `ignored`: patterns of files that nothing is done with; `checksums`: a list by `sha256sum`; `no_rows`: whether the
    dump may hold definitions alone; `sums`: whether to take sums of the rows, for the first proof to compare with.
    """

    directory: Path
    workers: int = 1
    form: CsvForm = field(default_factory=CsvForm)
    time_zone: str = ""
    ignored: tuple[str, ...] = ()
    checksums: Path | None = None
    no_rows: bool = False
    sums: bool = False


class Show:
    """What a person sees of a load; this one shows nothing."""

    def begin(self, files: int, size: int) -> None:
        """So many files and bytes are to be loaded."""

    def rows(self, count: int) -> None:
        """So many more rows are in the target."""

    def file(self) -> None:
        """A file is whole."""


class Load:
    """One load."""

    def __init__(
        self, config: Config, options: LoadOptions, show: Show | None = None, observe: Observe = observe_nothing
    ) -> None:
        zone = options.time_zone or config.source.time_zone
        self._config = config.model_copy(update={"source": config.source.model_copy(update={"time_zone": zone})})
        self._options, self._show, self._observe = options, show or Show(), observe
        self._filter, self._routes = read_filter(config.filter), read_routes(config.sink)
        self.stopping = threading.Event()
        self._target: Target = target_of(self._config)
        self._presence: Heartbeat | None = None

    def run(self) -> LoadOutcome:
        """Load, or go on with a load. Raises ReconcilerError."""
        begun = time.monotonic()
        check_is_database(self._config.target.uri, "load")
        dump = read_dump(self._options.directory, self._options.ignored)
        self._check_start(dump)
        self._check_rows(dump)
        self._check_case(dump)
        if self._options.checksums is not None:
            check_sums(dump, self._options.checksums)
        outcome = LoadOutcome(dump.tso)
        with self._leading() as target:
            stored = target.stored(self._config.changefeed)
            target.loads.make()
            if stored is not None and self._is_done(stored.progress, dump, target):
                self._routes.check_change(stored.progress.routes, self._config.changefeed)
                outcome.finished = outcome.resumed = True
            else:
                self._load(dump, self._led(dump, None if stored is None else stored.progress, outcome), outcome)
        outcome.seconds = time.monotonic() - begun
        return outcome

    @contextmanager
    def _leading(self) -> Iterator[Target]:
        limits = self._config.limits
        lease = RedisLease(self._config.redis.uri, self._config.changefeed, limits.lease_seconds)
        try:
            self._target.connect()
            refuse_living_leader(self._config, self._target)
            instances = self._target.instances(self._config.changefeed)
            self._presence = Heartbeat(instances, lease, limits.lease_seconds)
            yield self._target
        finally:
            if self._presence is not None:
                self._presence.stop()
            self._target.close()

    def _check_start(self, dump: Dump) -> None:
        start = self._config.source.start_ts
        if start not in (0, dump.tso):
            raise ConfigError(
                f"source.start-ts is {start}, the dump's TSO is {dump.tso}",
                where=str(dump.directory),
                hint="leave start-ts out: a loaded dump decides where the changefeed begins",
            )

    def _check_rows(self, dump: Dump) -> None:
        """A dump of definitions alone (`--no-data`) would begin a changefeed with nothing."""
        if not (dump.files or self._options.no_rows):
            raise ConfigError(
                "the dump holds no rows at all",
                where=str(dump.directory),
                hint="dump without --no-data; if upstream really has none, use --no-rows",
            )

    def _check_case(self, dump: Dump) -> None:
        """Raise ConfigError where case alone leaves something out, also a view, before anything is begun."""
        for name in (*dump.tables, *dump.views):
            self._filter.tables.of_message(*name)
        for database in dump.databases:
            self._filter.tables.database_of_message(database)

    def _is_done(self, progress: Progress, dump: Dump, target: Target) -> bool:
        """Whether this very dump has been loaded and nothing else has happened since."""
        files = target.loads.files(self._config.changefeed, progress.ledger)
        same = progress.untouched and progress.start_ts == dump.tso and not progress.loading_ts
        # of tables that are left out nothing was begun
        if not (same and files and all(file.whole or not file.rows for file in files.values())):
            return False
        self._check_same(progress, dump, [file.name for file in self._wanted(dump)], files)
        return True

    def _led(self, dump: Dump, known: Progress | None, outcome: LoadOutcome) -> Lease:
        """Become the leader of a changefeed that is new, or whose load is not done. Raises ConfigError."""
        target, changefeed = self._target, self._config.changefeed
        loading = known is not None and known.loading_ts != BEGINNING
        if known is not None and not loading and not known.untouched:
            raise ConfigError(
                f"changefeed {changefeed!r} has run: it holds all up to {known.checkpoint_ts}",
                where=target.name,
                hint=f"load into a new changefeed; {_AGAIN}",
            )
        names = [file.name for file in self._wanted(dump)]
        first = Progress.first(BEGINNING, self._filter.digest, uuid4().hex, self._routes.digest)
        zone = self._config.source.time_zone
        first = replace(first, loading_ts=dump.tso, time_zone=zone_name(zone))
        if known is not None and loading:
            check_load_zone(known, zone, changefeed)
            self._routes.check_change(known.routes, changefeed)
            first, outcome.resumed = known, True
            noted = target.loads.files(changefeed, known.ledger)
            self._check_same(known, dump, names, noted)
        else:
            noted = {}
        if not noted:
            self._check_empty(dump)
        claimed = target.claim(changefeed, first)
        if claimed.progress != (known or first):
            hint = "stop it (and whatever would start another one), then run this command again"
            raise LeadershipLostError(f"an instance of {changefeed!r} ran meanwhile", where=target.name, hint=hint)
        lease = Lease(changefeed, claimed.epoch)
        if self._presence is not None:
            self._presence.lead(lease.epoch)
        if noted:
            target.go_on_loading(lease)
        else:
            target.begin_load(names, first, lease)
        self._observe(LoadStep.BEGUN)
        return lease

    def _check_same(self, known: Progress, dump: Dump, names: Sequence[str], noted: Collection[str]) -> None:
        # what was killed right after its claim has noted nothing yet
        if (known.loading_ts or known.start_ts) != dump.tso or (noted and set(noted) != set(names)):
            tso = known.loading_ts or known.start_ts
            raise ConfigError(
                f"another dump {'is being' if known.loading_ts else 'was'} loaded into this changefeed, of TSO {tso}"
                f" ({utc_text(tso)} UTC), {len(noted)} files",
                where=str(dump.directory),
                hint=f"go on with that one, unchanged and with the same filter; {_AGAIN}",
            )

    def _check_empty(self, dump: Dump) -> None:
        """What is there already must be empty: nobody knows what its rows are."""
        catalog = self._target.catalog()
        for name in sorted(self._named(dump)):
            there = catalog.spelled(name)
            if catalog.get(there) is not None and not self._target.is_empty(there):
                hint = "load into empty tables, or into a target that lacks them; DELETE or DROP what is not needed"
                raise TargetError(f"table {there} holds rows already", where=self._target.name, hint=hint)

    def _named(self, dump: Dump) -> set[TableName]:
        names = {*dump.tables, *(file.table for file in dump.files)}
        return {name for name in names if self._filter.tables(*name)}

    def _wanted(self, dump: Dump) -> list[DataFile]:
        """Files of tables that the rules take in; the largest first, so that none is left for the end."""
        wanted = [file for file in dump.files if self._filter.tables.of_message(*file.table)]
        return sorted(wanted, key=lambda file: (-file.size, file.name))

    def _load(self, dump: Dump, lease: Lease, outcome: LoadOutcome) -> None:
        progress = self._target.stored(lease.changefeed)
        if progress is None:
            raise TargetError(f"the progress of changefeed {lease.changefeed!r} is gone", where=self._target.name)
        schemas = Schemas(self._config, self._target, lease, progress.progress, self._observe)
        schemas.define(dump, outcome)
        self._account(dump, schemas, outcome)
        self._observe(LoadStep.DEFINED)
        if not self._rows(dump, lease, schemas, outcome):
            return
        self._observe(LoadStep.FILES_DONE)
        schemas.view(dump, outcome)
        self._observe(LoadStep.VIEWS_DONE)
        ledger, routes = progress.progress.ledger, self._routes.digest
        first = Progress.first(CheckpointTs(dump.tso), self._filter.digest, ledger, routes)
        first = replace(first, sources=schemas.progress.sources, merged=schemas.progress.merged)
        if self._takes_sums:
            self._keep_sums(dump, schemas, first)
        with Spool() as nothing:
            self._target.apply(nothing, first, lease, lambda _: None)
        outcome.finished = True
        self._observe(LoadStep.DONE)

    @property
    def _takes_sums(self) -> bool:
        return self._options.sums or self._config.proof.enabled

    def _keep_sums(self, dump: Dump, schemas: Schemas, first: Progress) -> None:
        """Keep what the tables have to hold, for proofs."""
        loaded = self._target.loads.files(self._config.changefeed, first.ledger)
        files: dict[TableName, list[Loaded]] = {name: [] for name in schemas.columns if name not in schemas.passed}
        for file in self._wanted(dump):
            if file.table not in schemas.passed:
                files.setdefault(file.table, []).append(loaded[file.name])
        keep_base(self._config, self._target, first, files)

    def _account(self, dump: Dump, schemas: Schemas, outcome: LoadOutcome) -> None:
        """Name what there is no proof of, and what is left out without a definition that says so."""
        wanted = self._wanted(dump)
        held = {file.table for file in wanted}
        unwanted = {str(file.table) for file in dump.files} - {str(name) for name in (*held, *dump.tables)}
        outcome.left_out += sorted(unwanted)
        outcome.without_rows = [str(name) for name in schemas.columns.keys() - schemas.passed - held]
        outcome.without_rows.sort()
        if outcome.without_rows:
            log.warning("the dump holds no rows of these tables", tables=outcome.without_rows[:_SHOWN])
        if self._options.checksums is None:
            outcome.unproven = sum(not file.is_proven for file in wanted)
        if outcome.unproven:
            advice = "--checksums, gzip or zstd prove the files whole; `reconciler verify --upstream` proves the result"
            log.warning("files cut off between two rows would look whole", files=outcome.unproven, hint=advice)

    def _rows(self, dump: Dump, lease: Lease, schemas: Schemas, outcome: LoadOutcome) -> bool:
        files = [file for file in self._wanted(dump) if file.table not in schemas.passed]
        orders = [self._order(file, lease, schemas) for file in files]
        self._show.begin(len(files), sum(file.size for file in files))

        def tell(rows: int) -> bool:
            outcome.rows += rows
            if rows:
                self._show.rows(rows)
            if self._presence is not None and self._presence.is_superseded:
                raise LeadershipLostError("another instance leads", where=self._target.name)
            return not self.stopping.is_set()

        if self._options.workers > 1 and len(orders) > 1:
            done = Workers(min(self._options.workers, len(orders)), tell).run(orders)
        else:
            done = one_by_one(orders, self._target, tell)
        for is_whole in done:
            if is_whole:
                outcome.files += 1
                self._show.file()
        return outcome.files == len(files)

    def _order(self, file: DataFile, lease: Lease, schemas: Schemas) -> Order:
        catalog = self._target.catalog()
        schema = catalog.get(catalog.spelled(file.table))
        if schema is None:
            raise TargetError(
                f"table {file.table} is missing in the target, and the dump does not define it",
                where=f"file={file.name}",
                hint="create it, or dump its definition too (without --no-schemas)",
            )
        check_key(schema, f"file={file.name}", force_replicate=self._filter.force_replicate)
        defined = schemas.columns.get(file.table, ())
        refuse_computed(defined, schema, file.name)
        zone = self._config.source.time_zone
        refused_definition(schema.name, defined, catalog, zone, f"file={file.name}")
        columns = self._routes.columns.of(file.table)
        if columns is not None:
            columns.check(schema.handle_key, {column.name: column.type.base for column in defined}, f"file={file.name}")
        sums = SumRules.of(self._config, schemas.progress, schema) if self._takes_sums else None
        work = FileWork(file, schema, defined, self._options.form, zone, columns, sums)
        mark = Mark(lease.changefeed, lease.epoch, file.name)
        return Order(work, mark, self._target.opener(), self._config.limits.retry_seconds, self._observe)
