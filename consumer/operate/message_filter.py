"""Which messages of a topic somebody wants to see."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from consumer.filters.tables import table_filter
from ordering.events import TableName


class Decoded(Protocol):
    """What is known of an event of a message (`consumer.operate.tail.Told`)."""

    @property
    def kind(self) -> str:
        """Its type."""
        ...

    @property
    def error(self) -> str:
        """Why it can't be decoded."""
        ...

    @property
    def commit_ts(self) -> int:
        """Its commitTs."""
        ...

    @property
    def table(self) -> TableName | None:
        """The table."""
        ...

    @property
    def key(self) -> tuple[str | None, ...]:
        """The values of the row's key."""
        ...


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Of these tables (as in `filter.rules`), of a row with this value in its key, from this commitTs on."""

    rules: tuple[str, ...] = ()
    key: str = ""
    since: int = 0
    watermarks: bool = True

    @property
    def leaves_out(self) -> bool:
        """Whether something of what is read may be left out."""
        return bool(self.rules or self.key or self.since) or not self.watermarks

    def predicate(self) -> Callable[[Decoded], bool]:
        """What can't be decoded always matches: nobody knows what it is. Raises ConfigError for rules that are none."""
        accepts = table_filter(list(self.rules)) if self.rules else None

        def matches(one: Decoded) -> bool:
            if one.error:
                return True
            if one.kind == "WATERMARK":
                return self.watermarks and not self.rules and not self.key and one.commit_ts >= self.since
            if accepts is not None and one.table is not None and not accepts(*one.table):
                return False
            return one.commit_ts >= self.since and (not self.key or self.key in one.key)

        return matches


EVERYTHING = MessageFilter()
