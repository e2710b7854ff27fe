"""Which topic and partition an event goes to.

As in TiCDC every dispatcher looks at the new image (DELETE: the old one). The hashes are not TiCDC's: nothing may
depend on them.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from consumer.demo.fake_ticdc.database import Row, Table

Dispatcher: TypeAlias = Literal["default", "table", "index-value", "columns", "ts"]

_NOT_IN_TOPICS = re.compile(r"[^a-zA-Z0-9._-]")


@dataclass(frozen=True, kw_only=True)
class Router:
    """The changefeed's routing: a topic or a pattern with {schema} and {table}, and a partition dispatcher.

    `columns` are for the dispatcher of that name; a table that lacks them is dispatched by its last column.
    """

    dispatcher: Dispatcher
    partitions: int
    topic: str
    default_topic: str
    columns: tuple[str, ...] = ()

    def topic_of(self, database: str, table: str) -> str:
        """Choose the topic of a table; a DDL without one goes to the default topic."""
        if not table:
            return self.default_topic
        return _NOT_IN_TOPICS.sub("_", self.topic.replace("{schema}", database).replace("{table}", table))

    def partition_of(self, table: Table, image: Row, commit_ts: int) -> int:
        """Choose the partition of a row event."""
        match self.dispatcher:
            case "default" | "table":
                return self._hashed(table.full_name)
            case "ts":
                return commit_ts % self.partitions
            case "index-value":
                return self._hashed("\0".join([f"{image[name]}" for name in table.handle_key]))
            case "columns":
                return self._hashed("\0".join([f"{image[name]}" for name in self._chosen(table)]))

    def _chosen(self, table: Table) -> tuple[str, ...]:
        there = tuple(name for name in self.columns if name in table.names)
        return there or table.names[-1:]

    def _hashed(self, text: str) -> int:
        return zlib.crc32(text.encode()) % self.partitions
