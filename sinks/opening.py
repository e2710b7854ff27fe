"""From a URI to a target."""

from dataclasses import replace
from pathlib import Path

from sinks.mysql.target import MysqlTarget
from sinks.postgres.target import PostgresTarget
from sinks.sqlite.target import SqliteTarget
from sinks.target import Target
from sinks.tidb.target import TidbTarget
from sinks.uri import parse_target_uri
from sinks.values import ValueRules


def open_target(uri: str, rules: ValueRules, write_source: int = 0, *, concurrent_indexes: bool = False) -> Target:
    """The target of a URI, not yet connected. Raises ConfigError.

    `write_source`: how TiDB marks what is written, so that its own changefeeds leave it out; 0: not at all.
    `concurrent_indexes`: whether PostgreSQL makes indexes without locking the table.
    """
    parsed = replace(parse_target_uri(uri), write_source=write_source, concurrent_indexes=concurrent_indexes)
    if parsed.kind == "sqlite":
        return SqliteTarget(Path(parsed.path), rules)
    if parsed.kind == "postgresql":
        return PostgresTarget(parsed, rules)
    family = TidbTarget if parsed.kind == "tidb" else MysqlTarget
    return family(parsed, rules)
