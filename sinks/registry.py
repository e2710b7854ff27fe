"""From a URI to a target."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ordering.errors import ConfigError
from sinks.dialect import Dialect
from sinks.rows.routed import NameMap
from sinks.rows.values import ValueRules
from sinks.target import Target
from sinks.uri import ObjectStore, TargetUri, parse_target_uri


def _mysql(uri: TargetUri, rules: ValueRules) -> Dialect[Any]:
    """Drivers take long to load: only the one that is needed is."""
    from sinks.mysql.dialect import MysqlDialect  # noqa: PLC0415

    return MysqlDialect(uri, rules)


def _tidb(uri: TargetUri, rules: ValueRules) -> Dialect[Any]:
    from sinks.tidb.dialect import TidbDialect  # noqa: PLC0415

    return TidbDialect(uri, rules)


def _postgres(uri: TargetUri, rules: ValueRules) -> Dialect[Any]:
    from sinks.postgres.dialect import PostgresDialect  # noqa: PLC0415

    return PostgresDialect(uri, rules)


def _sqlite(uri: TargetUri, rules: ValueRules) -> Dialect[Any]:
    from sinks.sqlite.dialect import SqliteDialect  # noqa: PLC0415

    return SqliteDialect(uri, rules)


def _iceberg(uri: TargetUri, rules: ValueRules) -> Dialect[Any]:
    """Iceberg's libraries are an extra, and take long to load."""
    try:
        from sinks.iceberg.dialect import IcebergDialect  # noqa: PLC0415
    except ImportError as error:
        hint = "pip install 'ticdc-reconciler[lake]'"
        raise ConfigError(f"Iceberg's libraries are missing: {error}", where="target.uri", hint=hint) from error
    if uri.kind == "iceberg+sqlite":
        from sinks.iceberg.sqlite_catalog import SqliteCatalogs  # noqa: PLC0415

        return IcebergDialect(uri, rules, SqliteCatalogs(uri.path))
    from sinks.iceberg.postgres_catalog import PostgresCatalogs  # noqa: PLC0415

    return IcebergDialect(uri, rules, PostgresCatalogs(uri))


DIALECTS: dict[str, Callable[[TargetUri, ValueRules], Dialect[Any]]] = {
    "mysql": _mysql,
    "mariadb": _mysql,
    "tidb": _tidb,
    "postgresql": _postgres,
    "iceberg+sqlite": _iceberg,
    "iceberg+postgresql": _iceberg,
    "sqlite": _sqlite,
}
"""A URI's kind, and the dialect of its target: a new one is a line here, and its scheme in `sinks.uri`."""


def open_target(
    uri: str,
    rules: ValueRules,
    write_source: int = 0,
    *,
    concurrent_indexes: bool = False,
    names: NameMap | None = None,
    objects: ObjectStore | None = None,
) -> Target:
    """The target of a URI, not yet connected. Raises ConfigError.

    `write_source`: how TiDB marks what is written, so that its own changefeeds leave it out; 0: not at all.
    `concurrent_indexes`: whether PostgreSQL makes indexes without locking the table. `names`: where tables of upstream
    lie in the target, if under other names. `objects`: Iceberg's warehouse, if it is in an object store.
    """
    parsed = replace(
        parse_target_uri(uri), write_source=write_source, concurrent_indexes=concurrent_indexes, objects=objects
    )
    return Target(DIALECTS[parsed.kind](parsed, rules), names=names)
