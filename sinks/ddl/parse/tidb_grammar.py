"""Whether a statement is one of TiDB's grammar, as far as that says what it is about.

A server of the same family knows more: `ALTER IGNORE TABLE`, `WAIT` behind a name, partitions that become tables,
tables made by a query. Who judges by TiDB's grammar and sends the same text has to refuse what only the server would
read. Source: `parser.y` of pingcap/tidb (AlterTableSpec, TableOption, CreateTableStmt).
"""

from collections.abc import Iterator, Sequence

from ordering.errors import InputError
from sinks.ddl.parse.statement import DdlKind, Statement
from sinks.ddl.parse.words import Word, WordKind, Words

_BEGINS = frozenset({
    "ADD", "ALGORITHM", "ALTER", "CACHE", "CHANGE", "CHECK", "COALESCE", "CONVERT", "DISABLE", "DISCARD", "DROP",
    "ENABLE", "EXCHANGE", "FIRST", "FORCE", "IMPORT", "LAST", "LOCK", "MERGE", "MODIFY", "NOCACHE", "OPTIMIZE", "ORDER",
    "PARTITION", "READ", "REBUILD", "REMOVE", "RENAME", "REORGANIZE", "REPAIR", "SECONDARY_LOAD", "SECONDARY_UNLOAD",
    "SET", "SPLIT", "TRUNCATE", "WITH", "WITHOUT",
})  # fmt: skip
"""What a clause of ALTER TABLE may begin with, options apart."""
_OPTIONS = frozenset({
    "AFFINITY", "ATTRIBUTES", "AUTOEXTEND_SIZE", "AUTO_ID_CACHE", "AUTO_INCREMENT", "AUTO_RANDOM_BASE",
    "AVG_ROW_LENGTH", "CHARACTER", "CHARSET", "CHECKSUM", "COLLATE", "COMMENT", "COMPRESSION", "CONNECTION", "DATA",
    "DEFAULT", "DELAY_KEY_WRITE", "ENCRYPTION", "ENGINE", "ENGINE_ATTRIBUTE", "IETF_QUOTES", "INDEX", "INSERT_METHOD",
    "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "NODEGROUP", "PACK_KEYS", "PAGE_CHECKSUM", "PAGE_COMPRESSED",
    "PAGE_COMPRESSION_LEVEL", "PASSWORD", "PLACEMENT", "PRE_SPLIT_REGIONS", "ROW_FORMAT", "SECONDARY_ENGINE",
    "SECONDARY_ENGINE_ATTRIBUTE", "SEQUENCE", "SHARD_ROW_ID_BITS", "STATS_AUTO_RECALC", "STATS_BUCKETS",
    "STATS_COL_CHOICE", "STATS_COL_LIST", "STATS_OPTIONS", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES",
    "STATS_SAMPLE_RATE", "STATS_TOPN", "STORAGE", "TABLESPACE", "TABLE_CHECKSUM", "TRANSACTIONAL", "TTL", "TTL_ENABLE",
    "TTL_JOB_INTERVAL", "UNION",
})  # fmt: skip
_NEXT = {"CONVERT": {"TO"}, "EXCHANGE": {"PARTITION"}}
"""What has to follow some of these words."""
_KEYS = {"PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR"}
_NO_QUERY = {DdlKind.CREATE_VIEW, DdlKind.OTHER}
"""What may hold a query, and what is none of ours to send."""
_ENDS = {
    DdlKind.DROP_TABLE: {"RESTRICT", "CASCADE"}, DdlKind.DROP_VIEW: {"RESTRICT", "CASCADE"},
    DdlKind.RENAME_TABLE: set[str](), DdlKind.TRUNCATE_TABLE: set[str](), DdlKind.DROP_DATABASE: set[str](),
}  # fmt: skip
"""Kinds that end with their names, and the one word that may follow."""


def check_grammar(statement: Statement, given: str) -> None:
    """Raise InputError for what TiDB could not have printed, and a server might read as something else.

    `given`: the statement as it came, with TiDB's own comments.
    """
    words = Words(statement.sql)
    if strange := _strange(statement, words) or _conditional_key(statement, given):
        raise InputError(f"TiDB has no such DDL statement: {strange!r} in {statement.sql[:200]!r}")


def _strange(statement: Statement, words: Words) -> str:
    """The part that is not TiDB's; "" if there is none."""
    if statement.kind in _ENDS:
        return _behind(statement, words.words)
    if statement.kind not in _NO_QUERY and (query := _query(words.words)):
        return query
    if statement.kind is DdlKind.ALTER_TABLE:
        return next((clause for clause in map(_strange_clause, _clauses(words)) if clause), "")
    return ""


def _conditional_key(statement: Statement, given: str) -> str:
    """A key that is made only if there is none of its name: MariaDB has that, TiDB of plain indexes alone.

    Whether upstream made it would be a matter of indexes that the target need not have.
    """
    if statement.kind not in {DdlKind.ALTER_TABLE, DdlKind.CREATE_TABLE} or "EXISTS" not in given.upper():
        return ""
    words = Words(given, features=True)
    while not words.ended:
        start = words.at
        if words.skip_any(*_KEYS):
            words.skip_any("KEY", "INDEX")
            if words.skip("IF", "NOT", "EXISTS"):
                return " ".join(word.text for word in words.words[start : words.at])
        else:
            words.take()
    return ""


def _behind(statement: Statement, words: Sequence[Word]) -> str:
    """What follows the names of a statement that ends with them."""
    rest = [word.text for word in words[statement.read :]]
    known = len(rest) == 1 and rest[0].upper() in _ENDS[statement.kind]
    return "" if not rest or known else " ".join(rest)[:100]


def _query(words: Sequence[Word]) -> str:
    """The word that begins a query: TiDB reserves these, so they are no names, and reads no query that yields rows."""
    creates = [word.text.upper() for word in words[:2]] == ["CREATE", "TABLE"]
    depth = 0
    for at, word in enumerate(words):
        depth += _is(word, "(") - _is(word, ")")
        rows = creates and at > 1 and (_is(word, "TABLE") or (_is(word, "VALUES") and not depth))
        if (rows or _is(word, "SELECT")) and not _is(words[at - 1], "."):
            return word.text
    return ""


def _clauses(words: Words) -> Iterator[list[Word]]:
    """The clauses of an ALTER TABLE: what stands between commas outside of brackets."""
    words.expect("ALTER", "TABLE")
    words.name()
    if words.skip("."):
        words.name()
    clause: list[Word] = []
    depth = 0
    for word in words.words[words.at :]:
        depth += _is(word, "(") - _is(word, ")")
        if _is(word, ",") and not depth:
            yield clause
            clause = []
        else:
            clause.append(word)
    if clause:
        yield clause


def _strange_clause(clause: Sequence[Word]) -> str:
    """A clause that is not TiDB's, in its words. A lone name, or one before INTO, goes on with a list of partitions."""
    texts = [word.text.upper() if word.kind is WordKind.PLAIN else "" for word in clause[:3]]
    lists = texts[1:2] in ([], ["INTO"])
    known = lists or not texts[0] or texts[0] in _BEGINS or texts[0] in _OPTIONS
    follows = lists or texts[0] not in _NEXT or texts[1] in _NEXT[texts[0]]
    qualified = (
        texts[0] == "RENAME" and texts[1:2] and texts[1] in {"COLUMN", "INDEX", "KEY"} and texts[2:3] in ([], ["."])
    )
    return "" if known and follows and not qualified else " ".join(word.text for word in clause)[:100]


def _is(word: Word, text: str) -> bool:
    return word.kind is WordKind.PLAIN and word.text.upper() == text
