"""Reads the options of tables and databases: what follows a list of columns, or a database's name."""

from sinks.ddl.collations import of_charset
from sinks.ddl.parse.lexer import Canonical
from sinks.ddl.parse.statement import DdlKind, read_statement
from sinks.ddl.parse.words import WordKind, Words

STORAGE = {
    "AUTO_INCREMENT", "AUTO_ID_CACHE", "AUTO_RANDOM_BASE", "CONVERT", "DEFAULT", "CHARACTER", "CHARSET", "COLLATE",
    "ENGINE", "ROW_FORMAT", "SHARD_ROW_ID_BITS", "PRE_SPLIT_REGIONS", "TTL", "TTL_ENABLE", "TTL_JOB_INTERVAL", "FORCE",
    "PLACEMENT", "CACHE", "NOCACHE", "STATS_OPTIONS", "ALGORITHM", "LOCK", "ATTRIBUTES", "COMPRESSION", "ORDER",
    "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "AVG_ROW_LENGTH", "CHECKSUM", "DELAY_KEY_WRITE", "ENABLE", "DISABLE",
    "STATS_PERSISTENT", "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES", "STATS_BUCKETS", "STATS_TOPN", "WITH", "WITHOUT",
    "SECONDARY_LOAD", "SECONDARY_UNLOAD", "ENCRYPTION", "AFFINITY", "MERGE_OPTION",
}  # fmt: skip
"""First words of clauses that change no row: storage, character sets of columns to come, statistics."""


def table_options(words: Words) -> tuple[str, str]:
    """The comment and the collation of a table, up to where its partitions begin; "" for what is not said."""
    found, charset = {"COMMENT": "", "COLLATE": ""}, ""
    while not words.ended and words.peek() != "PARTITION":
        word = words.take()
        option = word.text.upper()
        if word.kind is WordKind.PLAIN and option in found:
            words.skip("=")
            found[option] = words.take().text
        elif word.kind is WordKind.PLAIN and (option == "CHARSET" or (option == "CHARACTER" and words.skip("SET"))):
            words.skip("=")
            charset = words.take().text.lower()
    return found["COMMENT"], found["COLLATE"].lower() or of_charset(charset)


def without_collation(sql: str) -> int | None:
    """Where an option can stand in a CREATE TABLE that names neither character set nor collation; else None."""
    found = _after_columns(sql)
    if found is None:
        return None
    at = found.words[found.at - 1].stop
    return None if table_options(found)[1] else at


def own_collation(sql: str) -> str:
    """The collation that a CREATE TABLE names, or that of its character set; "" for none."""
    found = _after_columns(sql)
    return "" if found is None else table_options(found)[1]


def _after_columns(sql: str) -> Words | None:
    """The words of a CREATE TABLE behind its columns; None for another statement."""
    statement, words = read_statement(sql), Words(sql)
    words.at = statement.read
    if statement.kind is not DdlKind.CREATE_TABLE or words.peek() != "(":
        return None
    words.in_brackets()
    return words


def read_database_collation(sql: str) -> str:
    """The collation that a CREATE or ALTER DATABASE names; "" for none."""
    words = Words(sql)
    words.skip_to("DATABASE", "SCHEMA")
    words.skip("IF", "NOT", "EXISTS")
    words.name()
    return table_options(words)[1]


def read_collation(clause: str) -> str:
    """The collation that a clause of ALTER TABLE gives a table; "" for another clause."""
    words = Words(Canonical(clause))
    return table_options(words)[1] if words.peek() in STORAGE else ""
