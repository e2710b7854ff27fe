"""Single messages of the Simple protocol."""

from typing import Any

from consumer.formats.sent_schema import SentSchema
from consumer.formats.simple.protocol import Simple
from ordering.events import Position
from tests.simple_protocol import BUILD_TS, encoded

AT = Position("t", 1, 42)
LIMIT = 1 << 20
COLUMNS = (("id", "int"), ("name", "varchar"), ("raw", "varbinary"), ("at", "timestamp"), ("big", "bigint unsigned"))
SCHEMA = SentSchema("d", "t", 7, COLUMNS, ("id",))
FORMAT = Simple().knowing([SCHEMA])


def column(name: str, kind: str) -> dict[str, Any]:
    base, *flags = kind.split(" ")
    told = {"mysqlType": base, "charset": "utf8mb4", "collate": "utf8mb4_bin", "length": 11}
    return {"name": name, "dataType": told | dict.fromkeys(flags, True), "nullable": False, "default": None}


def table_schema(**changes: Any) -> dict[str, Any]:
    key = {"name": "primary", "unique": True, "primary": True, "nullable": False, "columns": ["id"]}
    told = {"schema": "d", "table": "t", "tableID": 104, "version": 7, "indexes": [key]}
    return {**told, "columns": [column(*one) for one in COLUMNS], **changes}


def image(**changes: Any) -> dict[str, Any]:
    moment = {"location": "UTC", "value": "2026-01-02 03:04:05"}
    return {"id": "1", "name": "ä<b>", "raw": "AAH/", "at": moment, "big": "18446744073709551615", **changes}


def without(message: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name not in names}


def row(kind: str = "INSERT", **changes: Any) -> dict[str, Any]:
    told = {"version": 1, "database": "d", "table": "t", "tableID": 104, "type": kind, "commitTs": 9}
    told |= {"buildTs": BUILD_TS, "schemaVersion": 7}
    told |= {"data": image()} if kind != "DELETE" else {}
    return {**told, **({"old": image()} if kind != "INSERT" else {}), **changes}


def bootstrap(**changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "type": "BOOTSTRAP",
        "commitTs": 0,
        "buildTs": BUILD_TS,
        "tableSchema": table_schema(),
        **changes,
    }


def ddl(**changes: Any) -> dict[str, Any]:
    told = {"version": 1, "type": "ALTER", "sql": "ALTER TABLE `d`.`t` ADD COLUMN `x` INT", "commitTs": 9}
    return {
        **told,
        "buildTs": BUILD_TS,
        "tableSchema": table_schema(),
        "preTableSchema": table_schema(version=5),
        **changes,
    }


def value(message: dict[str, Any]) -> bytes:
    return encoded(message)
