"""Which DDLs TiCDC replicates: its allow list, by kinds of its own.

Source: TiCDC documentation, "Changefeed DDL Replication"; what that leaves open, and the names of the kinds: lists in
`pkg/filter` of tiflow and of its successor, pingcap/ticdc, which has foreign keys too. One statement may hold several
kinds: an ALTER TABLE with several clauses, which TiDB calls a multi-schema change.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from sinks.ddl.parse.statement import skip_to_index, skip_to_view
from sinks.ddl.parse.words import Word, WordKind, Words


class Event(Enum):
    """A kind of DDL that TiCDC replicates, by the name that `ignore-event` gives it."""

    CREATE_DATABASE = "create database"
    DROP_DATABASE = "drop database"
    ALTER_DATABASE_CHARSET = "modify schema charset and collate"
    CREATE_TABLE = "create table"
    DROP_TABLE = "drop table"
    TRUNCATE_TABLE = "truncate table"
    RENAME_TABLE = "rename table"
    RECOVER_TABLE = "recover table"
    TABLE_COMMENT = "modify table comment"
    TABLE_CHARSET = "modify table charset and collate"
    CREATE_VIEW = "create view"
    DROP_VIEW = "drop view"
    ADD_PARTITION = "add table partition"
    DROP_PARTITION = "drop table partition"
    TRUNCATE_PARTITION = "truncate table partition"
    EXCHANGE_PARTITION = "exchange table partition"
    REORGANIZE_PARTITION = "reorganize table partition"
    PARTITION_TABLE = "alter table partitioning"
    REMOVE_PARTITIONING = "remove table partitioning"
    ADD_COLUMN = "add column"
    DROP_COLUMN = "drop column"
    MODIFY_COLUMN = "modify column"
    SET_DEFAULT = "set default value"
    REBASE_AUTO_ID = "rebase auto id"
    ADD_PRIMARY_KEY = "add primary key"
    DROP_PRIMARY_KEY = "drop primary key"
    CREATE_INDEX = "create index"
    DROP_INDEX = "drop index"
    RENAME_INDEX = "rename index"
    ADD_FOREIGN_KEY = "add foreign key"
    DROP_FOREIGN_KEY = "drop foreign key"
    INDEX_VISIBILITY = "alter index visibility"
    TTL = "alter ttl info"
    REMOVE_TTL = "alter ttl remove"
    MULTI_SCHEMA_CHANGE = "multi schema change"

    @property
    def is_alter(self) -> bool:
        """Whether `alter table` in `ignore-event` means it too; so it does for every form of an index or a RENAME."""
        return self not in _NO_ALTER


_NO_ALTER = {
    Event.CREATE_DATABASE, Event.DROP_DATABASE, Event.ALTER_DATABASE_CHARSET, Event.CREATE_TABLE, Event.DROP_TABLE,
    Event.TRUNCATE_TABLE, Event.RECOVER_TABLE, Event.CREATE_VIEW, Event.DROP_VIEW,
}  # fmt: skip
_WITHOUT_INDEX = {
    Event.CREATE_DATABASE, Event.DROP_DATABASE, Event.ALTER_DATABASE_CHARSET, Event.CREATE_INDEX, Event.ADD_PRIMARY_KEY,
}  # fmt: skip
"""What is replicated even where a table has no valid index: it may be what gives it one."""


def replicates(event: Event, *, valid_index: bool, force: bool) -> bool:
    """Whether TiCDC replicates it. `valid_index`: whether the table has one; `force`: `force-replicate`."""
    return valid_index or force or event in _WITHOUT_INDEX


@dataclass(frozen=True, slots=True)
class Clauses:
    """What a statement does: its kinds, and what of it is on no list, in its own words."""

    events: tuple[Event, ...]
    unlisted: tuple[str, ...] = ()


def clauses_of(sql: str) -> Clauses:
    """The kinds of a statement. Raises InputError if it can't be read."""
    words = Words(sql, features=True)
    verb = words.peek()
    rule = _VERBS.get(verb)
    event = rule(words) if rule else None
    if isinstance(event, Clauses):
        return event
    return Clauses((event,)) if event else Clauses((), (" ".join(sql.split())[:100],))


def _create(words: Words) -> Event | None:
    words.skip("CREATE")
    if words.skip_any("DATABASE", "SCHEMA"):
        return Event.CREATE_DATABASE
    if words.skip("TABLE"):
        return Event.CREATE_TABLE
    if skip_to_view(words):
        return Event.CREATE_VIEW
    return Event.CREATE_INDEX if skip_to_index(words) else None


def _drop(words: Words) -> Event | None:
    words.skip("DROP")
    named = {
        "DATABASE": Event.DROP_DATABASE, "SCHEMA": Event.DROP_DATABASE, "TABLE": Event.DROP_TABLE,
        "VIEW": Event.DROP_VIEW, "INDEX": Event.DROP_INDEX,
    }  # fmt: skip
    return named.get(words.peek())


def _truncate(words: Words) -> Event | None:
    return Event.TRUNCATE_TABLE if words.skip("TRUNCATE") else None


def _rename(words: Words) -> Event | None:
    return Event.RENAME_TABLE if words.skip("RENAME", "TABLE") else None


def _recover(words: Words) -> Event | None:
    return Event.RECOVER_TABLE if words.skip("RECOVER", "TABLE") or words.skip("FLASHBACK", "TABLE") else None


def _alter(words: Words) -> Event | Clauses | None:
    words.skip("ALTER")
    if words.skip_any("DATABASE", "SCHEMA"):
        found = words.skip_to("CHARACTER", "CHARSET", "COLLATE")
        return Event.ALTER_DATABASE_CHARSET if found else None
    words.skip("IGNORE")
    if not words.skip("TABLE"):
        return None
    words.name()
    if words.skip("."):
        words.name()
    return _altered(words)


def _altered(words: Words) -> Clauses:
    events: list[Event] = []
    unlisted: list[str] = []
    while not words.ended:
        start = words.at
        found = _clause(words)
        events += found
        if words.at == start or not _ends(words):
            words.skip_clause()
        if not found and not _says_nothing(words.words[start]):
            unlisted.append(words.sql[words.words[start].start : words.words[max(start, words.at - 1)].stop][:100])
        if words.at == start:
            words.take()
        words.skip(",")
    return Clauses(tuple(events), tuple(unlisted))


def _ends(words: Words) -> bool:
    return words.ended or words.peek() == ","


_SILENT = {"ALGORITHM", "LOCK", "FORCE", "WITH", "WITHOUT"}
"""Clauses that say how, not what."""


def _says_nothing(first: Word) -> bool:
    """Whether a clause that begins so has no kind of its own; a name in quotes goes on with a list of partitions."""
    return first.kind is WordKind.NAME or first.text.upper() in _SILENT


def _clause(words: Words) -> list[Event]:
    """The kinds of the next clause."""
    rule = _ALTERS.get(words.peek())
    if rule is not None:
        words.take()
        found = rule(words)
        if found:
            return found if isinstance(found, list) else [found]
        return []
    return _options(words)


def _add(words: Words) -> Event | list[Event] | None:
    if words.skip("COLUMN") and words.peek() != "(":
        return Event.ADD_COLUMN
    if words.peek() == "(":
        return list(_parts(Words(words.in_brackets())))
    return _added(words)


def _added(words: Words) -> Event | None:
    """The kind of what is added: a column, an index or a constraint."""
    if words.skip("CONSTRAINT"):
        if words.peek() not in {"PRIMARY", "UNIQUE", "FOREIGN", "CHECK"}:
            words.name()
    elif words.peek() not in _ADDED and words.peek() not in {"CHECK", "STATS_EXTENDED"}:
        return Event.ADD_COLUMN
    return _ADDED.get(words.peek())


def _parts(inner: Words) -> Iterator[Event]:
    """The kinds of what a bracket lists."""
    while not inner.ended:
        event = _added(inner)
        if event is not None:
            yield event
        inner.skip_clause()
        inner.skip(",")


_ADDED = {
    "PRIMARY": Event.ADD_PRIMARY_KEY, "PARTITION": Event.ADD_PARTITION, "FOREIGN": Event.ADD_FOREIGN_KEY,
    **dict.fromkeys(("INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR"), Event.CREATE_INDEX),
}  # fmt: skip


def _drop_part(words: Words) -> Event | None:
    named = {
        "PRIMARY": Event.DROP_PRIMARY_KEY, "INDEX": Event.DROP_INDEX, "KEY": Event.DROP_INDEX,
        "PARTITION": Event.DROP_PARTITION, "COLUMN": Event.DROP_COLUMN, "FOREIGN": Event.DROP_FOREIGN_KEY,
    }  # fmt: skip
    if words.peek() in {"CHECK", "CONSTRAINT", "STATS_EXTENDED"}:
        return None
    return named.get(words.peek(), Event.DROP_COLUMN)


def _alter_part(words: Words) -> Event | None:
    if words.skip("INDEX"):
        return Event.INDEX_VISIBILITY
    if words.peek() in {"CHECK", "CONSTRAINT", "PARTITION"}:
        return None
    return Event.SET_DEFAULT


def _rename_part(words: Words) -> Event:
    if words.skip_any("INDEX", "KEY"):
        return Event.RENAME_INDEX
    return Event.MODIFY_COLUMN if words.skip("COLUMN") else Event.RENAME_TABLE


def _remove_part(words: Words) -> Event | None:
    return {"PARTITIONING": Event.REMOVE_PARTITIONING, "TTL": Event.REMOVE_TTL}.get(words.peek())


def _partition_part(words: Words) -> Event | None:
    """The words after PARTITION BY hold brackets and commas: what they belong to is one clause."""
    if not words.skip("BY"):
        return None
    while not words.ended:
        words.take()
    return Event.PARTITION_TABLE


def _before_partition(event: Event) -> "Callable[[Words], Event | None]":
    return lambda words: event if words.peek() == "PARTITION" else None


_Clause = Callable[[Words], "Event | list[Event] | None"]
_ALTERS: dict[str, _Clause] = {
    "ADD": _add,
    "DROP": _drop_part,
    "ALTER": _alter_part,
    "RENAME": _rename_part,
    "REMOVE": _remove_part,
    "MODIFY": lambda _: Event.MODIFY_COLUMN,
    "CHANGE": lambda _: Event.MODIFY_COLUMN,
    "TRUNCATE": _before_partition(Event.TRUNCATE_PARTITION),
    "EXCHANGE": _before_partition(Event.EXCHANGE_PARTITION),
    "REORGANIZE": _before_partition(Event.REORGANIZE_PARTITION),
    "COALESCE": _before_partition(Event.REORGANIZE_PARTITION),
    "PARTITION": _partition_part,
    "CONVERT": lambda _: Event.TABLE_CHARSET,
}
_OPTIONS = {
    "COMMENT": Event.TABLE_COMMENT, "AUTO_INCREMENT": Event.REBASE_AUTO_ID, "CHARACTER": Event.TABLE_CHARSET,
    "CHARSET": Event.TABLE_CHARSET, "COLLATE": Event.TABLE_CHARSET, "TTL": Event.TTL, "TTL_ENABLE": Event.TTL,
    "TTL_JOB_INTERVAL": Event.TTL,
}  # fmt: skip


def _options(words: Words) -> list[Event]:
    """The kinds of a run of table options, each once, in their order."""
    found: dict[Event, None] = {}
    while not _ends(words):
        word = words.take()
        event = _OPTIONS.get(word.text.upper()) if word.kind is WordKind.PLAIN else None
        if event is not None:
            found[event] = None
    return list(found)


_VERBS: dict[str, Callable[[Words], Event | Clauses | None]] = {
    "CREATE": _create,
    "DROP": _drop,
    "TRUNCATE": _truncate,
    "RENAME": _rename,
    "RECOVER": _recover,
    "FLASHBACK": _recover,
    "ALTER": _alter,
}
