"""What speaks against going back to an earlier commitTs (`ordering.rewind`)."""

from collections.abc import Sequence

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.source.offer import Probe
from ordering.errors import ConfigError, InputError
from ordering.events import folded
from ordering.progress import Progress
from ordering.timestamps import utc_text
from sinks.bookkeeping.ddl_log import DdlRecord, reaches_back
from sinks.rows.schema import Catalog
from sinks.target import Target


def check_bounds(progress: Progress, to: int) -> None:
    """Raise ConfigError for what is no earlier commitTs of this changefeed."""
    if to >= progress.checkpoint_ts:
        raise ConfigError(f"commitTs {to} is not below the checkpoint {progress.checkpoint_ts}")
    if to < progress.began_ts:
        raise ConfigError(
            f"commitTs {to} lies below the start-ts {progress.start_ts} of this changefeed"
            if to < progress.start_ts
            else f"commitTs {to} lies below {progress.joined_ts}, where the topics were taken up",
            hint="what lies below came with a dump, or from files: load a dump again",
        )


def check_ddls(log: Sequence[DdlRecord], to: int, high: int) -> None:
    """Raise ConfigError for a DDL in between that the target has executed."""
    between = [ddl for ddl in log if to < ddl.commit_ts <= high and ddl.happened]
    if not reaches_back(log, to):
        between = between or [log[-1]]  # what came before is not known any more
    if between:
        last = max(between, key=lambda ddl: ddl.commit_ts)
        raise ConfigError(
            f"a DDL was executed above commitTs {to}: at {last.commit_ts} ({utc_text(last.commit_ts)} UTC) in database"
            f" {last.database!r}: {last.sql[:200]}",
            hint=f"rows from before it need not fit the table any more: rewind to {last.commit_ts} or above, or restore"
            " a backup from before it (`reconciler help recovery`)",
        )


def check_keys(progress: Progress, catalog: Catalog, to: int, high: int) -> None:
    """Raise ConfigError where a table's rows are told apart by another key now than by that which upstream dropped.

    That was left out here, and somebody has made the new one. Rows from before it may be equal in that.
    """
    for name, keys in sorted(progress.kept_keys.items()):
        schema, times = catalog.get(catalog.spelled(name)), [key.commit_ts for key in keys.values()]
        last = max((ts for ts in times if ts <= high), default=0)
        told = frozenset() if schema is None else frozenset(map(folded, schema.handle_key))
        if to < last <= high and told and told not in {key.columns for key in keys.values()}:
            raise ConfigError(
                f"upstream dropped a key of table {name} above commitTs {to}, at {last} ({utc_text(last)} UTC), and the"
                f" target tells its rows apart by {', '.join(sorted(told))} now",
                hint=f"rows from before it may be equal in these columns: rewind to {last} or above, or restore a"
                " backup from before it (`reconciler help recovery`)",
            )


def check_keyless(config: Config, target: Target) -> None:
    """Raise ConfigError for rows without a key: they are counted, and applying them once more would double them."""
    counts = read_filter(config.filter).tables
    keyless = sorted(
        str(name) for name, table in target.catalog().tables.items() if not table.handle_key and counts(*name)
    )
    if config.filter.force_replicate and keyless:
        raise ConfigError(
            f"tables without a valid index can't be applied once more: {', '.join(keyless[:5])}",
            where=target.name,
            hint="restore a backup with its progress, or reset and load a dump (`reconciler help recovery`)",
        )


def check_gone(config: Config, progress: Progress, probe: Probe) -> None:
    """Raise InputError for a retired topic that is gone: what it held above the commitTs can't be applied once more.

    One that ended held nothing above the DDL that took its last table, and no DDL may lie in between.
    """
    there = {partition.topic for partition in probe.partitions}
    read = {partition.topic for partition in progress.partitions}
    gone = sorted(name for name in read - there if not progress.topics[name].ended)
    if gone and config.source.unproven_beginning != "accept":
        raise InputError(
            "a retired topic is gone: what it held can't be applied once more",
            where=f"topic={gone[0]}",
            hint="restore a backup with its progress (docs/recovery.md); or, if no row of its tables is to be applied"
            ' again, set source.unproven-beginning = "accept" for this command',
        )
