"""Messages made wrong: bytes changed at random, and JSON that is still JSON but says something that nobody sends."""

import random
from typing import Any

import cramjam
import msgspec

from consumer.codec.compression import decompressed, is_compressed

_DEEP = msgspec.Raw(b"[" * 3_000 + b"]" * 3_000)
TEXTS = (
    "", "\0", "a\0b", "x" * 64, "x" * 65, "y" * 5_000, "../x", "/etc/passwd", "..", ".", "main", "temp", "MAIN",
    "ticdc_reconciler", "TICDC_RECONCILER", "mysql", "pg_catalog", "sqlite_master", "`; DROP TABLE d.t; --",
    "a`b", 'a"b', "a'b", "a\\", "\n\r\t", "😀", "\u202e", "%s", "{}", "1e400", "-0", "NaN", "0x00", "9" * 100,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1.5, 1e308, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**40,
    msgspec.Raw(b"1e999"), msgspec.Raw(b"-1e-999"), [], {}, [[]], [{}], [{}, {}], [None], {"id": None}, {"": ""},
    ["id", "id"], ["nope"], [str(n) for n in range(100)], _DEEP, *TEXTS,
)  # fmt: skip
DDLS = (
    "(" * 3_000, "CREATE TABLE d.t (a INT DEFAULT " + "(" * 3_000 + "1" + ")" * 3_000 + ")",
    "DROP DATABASE ticdc_reconciler", "DROP TABLE d.t, ticdc_reconciler.checkpoint",
    "RENAME TABLE d.t TO ticdc_reconciler.t", "CREATE TABLE d.x LIKE ticdc_reconciler.checkpoint",
    "CREATE TABLE `ticdc_reconciler`.`checkpoint` (id INT PRIMARY KEY)", "SELECT 1", ";", "", "/*", "CREATE TABLE",
    "DROP TABLE d.t; DROP TABLE d.u", "CREATE TABLE `../x`.`y` (id INT PRIMARY KEY)", "CREATE DATABASE `../../x`",
    "CREATE DATABASE `main`", "CREATE DATABASE `temp`", "CREATE DATABASE `" + "😀" * 64 + "`",
    "CREATE TABLE d.`" + "n" * 64 + "` (id INT PRIMARY KEY)", "CREATE TABLE d.x (id INT PRIMARY KEY) COMMENT '''; --'",
    "ATTACH DATABASE '/tmp/x' AS y", "GRANT ALL ON *.* TO x", "LOAD DATA INFILE '/etc/passwd' INTO TABLE d.t",
    "CREATE TABLE d.`a\0b` (id INT PRIMARY KEY)", "CREATE TABLE d.x (`\"`  INT PRIMARY KEY, `'` INT, `;` INT)",
)  # fmt: skip


def plain(value: bytes) -> bytes:
    """A message's JSON."""
    return decompressed(value, 64 << 20) if value and is_compressed(value) else value


def mutated(value: bytes, chance: random.Random) -> bytes:
    """The message with one to three faults."""
    value = plain(value)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        value = chance.choice((spoiled, _json, _json, _json, _packed, _ddl))(value, chance)
    return value


def spoiled(value: bytes, chance: random.Random) -> bytes:
    """The bytes with one fault."""
    changed = bytearray(value)
    at = chance.randrange(len(changed) + 1)
    upto = min(len(changed), at + chance.choice((1, 1, 2, 8, 64, 1_000)))
    match chance.randrange(5):
        case 0:
            changed[at:upto] = chance.randbytes(upto - at)
        case 1:
            del changed[at:upto]
        case 2:
            changed[at:at] = changed[at:upto]
        case 3:
            changed[at:at] = chance.choice((b"\0", b"\xff", b'"', b"\\", b"{", b"[", b",", b"\xed\xa0\x80", b"9" * 500))
        case 4:
            del changed[at:]
    return bytes(changed)


def _json(value: bytes, chance: random.Random) -> bytes:
    """One value anywhere replaced, taken out, named otherwise, or there twice."""
    try:
        message = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return spoiled(value, chance)
    places = list(_places(message))
    if not places:
        return value
    inside, key = chance.choice(places)
    match chance.randrange(5):
        case 0 | 1:
            inside[key] = chance.choice(VALUES)
        case 2:
            del inside[key]
        case 3 if isinstance(inside, dict):
            inside[chance.choice((*TEXTS, str(key).upper(), f"{key} "))] = inside.pop(key)
        case _:
            twice = msgspec.json.encode(inside[key])
            named = msgspec.json.encode(str(key))
            other = msgspec.json.encode(chance.choice(VALUES))
            return msgspec.json.encode(message).replace(
                named + b":" + twice, named + b":" + other + b"," + named + b":" + twice, 1
            )
    return msgspec.json.encode(message)


def _places(value: Any) -> Any:
    """Every (dict or list, key) of a JSON value."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _ddl(value: bytes, chance: random.Random) -> bytes:
    """Another statement, or the same with bytes changed, where there is one; anything else for rows."""
    try:
        message = msgspec.json.decode(value)
        sql = message["sql"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
        return _json(value, chance)
    if not sql or not isinstance(sql, str):
        return _json(value, chance)
    changed = chance.choice(DDLS) if chance.random() < 0.5 else spoiled(sql.encode(), chance).decode(errors="replace")
    return msgspec.json.encode({**message, "sql": changed})


def _packed(value: bytes, chance: random.Random) -> bytes:
    """Compressed, and mostly hurt after that."""
    pack = chance.choice((lambda v: bytes(cramjam.lz4.compress(v)), lambda v: bytes(cramjam.snappy.compress_raw(v))))
    return spoiled(pack(value), chance) if chance.random() < 0.7 else pack(value)
