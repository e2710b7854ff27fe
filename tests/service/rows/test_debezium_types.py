"""A message that TiCDC's own test requires of its Debezium encoder: each value as its Canal-JSON encoder has it.

`tests/vectors/debezium/README.md` says where both come from.
"""

import json
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.formats.debezium.protocol import Debezium
from consumer.formats.joined import joined
from ordering.errors import TargetError
from ordering.events import Position
from tests.debezium import as_debezium
from tests.service.cells import VECTORS
from tests.service.lab import Feed
from tests.service.messages import at, ddl, encoded, watermarks

PLACE = VECTORS / "debezium"
LOST = {"col_d_0000": None, "col_dt_0000": None}
"""Zero dates, in columns that may be NULL."""
SPELLED = {
    "col_dt_fsp_1": "2023-11-30 12:34:56.100",
    "col_dt_fsp_4": "2023-11-30 12:34:56.123500",
    "col_t_fsp_1": "12:34:56.100",
    "col_t_fsp_4": "12:34:56.123500",
    "col_enum": "a",
    "col_set": "a,b",
}
"""Other spellings of the same."""
LOSSY = {"protocol": "debezium", "lossy-values": "stop"}


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((PLACE / name).read_text())
    return found


def sent(database: str) -> tuple[Message, Message]:
    """The row by both encoders, at transaction 3, in a database."""
    canal, value, key = read("datatype.canal.json"), read("datatype.dbz.json"), read("datatype.dbz.key.json")
    value["payload"]["source"] |= {"connector": "TiCDC", "db": database, "commit_ts": at(3)}
    for image in value["schema"]["fields"]:
        if image["field"] in {"before", "after"}:
            image["fields"] = [{"tidb_type": canal["mysqlType"][one["field"]], **one} for one in image["fields"]]
    canal |= {"database": database, "_tidb": {"commitTs": at(3)}}
    return Message("ticdc", 0, encoded(canal)), Message("ticdc", 0, encoded(value), encoded(key))


def test_every_value_is_canal_jsons() -> None:
    canal, debezium = sent("d")
    found = json.loads(Debezium().canal(joined(debezium.key, debezium.value), Position("t", 0, 0), 1 << 20) or b"")
    wanted = json.loads(canal.value)
    assert found["data"] == [{**wanted["data"][0], **LOST, **SPELLED}]
    assert found["mysqlType"] == wanted["mysqlType"]
    assert (found["pkNames"], found["type"], found["_tidb"]) == (["pk"], "INSERT", wanted["_tidb"])


@pytest.mark.service
def test_both_land_alike(every_feed: Feed) -> None:
    feed, made = every_feed.with_(target={"invalid-dates": "null"}), (PLACE / "datatype.ddl.sql").read_text()
    (canal, _), (_, debezium) = sent("one"), sent("two")

    def begun(database: str) -> list[Message]:
        return [ddl(f"{database}.", 1, f"CREATE DATABASE `{database}`", kind="QUERY"), ddl(f"{database}.foo", 2, made)]

    feed.send([*begun("one"), canal, *watermarks(4)])
    feed.once()
    name, rule = feed.topic, {"protocol": "debezium", "lossy-values": "stop", "topics": [f"{feed.topic}.two"]}
    feed.with_(source=rule)
    other = [*as_debezium(begun("two")), debezium, *as_debezium(watermarks(5))]
    feed.topic = f"{name}.two"
    feed.send(other)
    feed.once()
    tables = feed.cells.tables(["one", "two"])
    (one,), (two,) = tables["one.foo"][1], tables["two.foo"][1]
    wanted = {column: value for column, value in one.items() if column not in LOST}
    spelled = {column: text for column, text in SPELLED.items() if one[column] != two[column]}
    assert {column: value for column, value in two.items() if column not in LOST} == {**wanted, **spelled}
    assert set(spelled) <= {"col_dt_fsp_1", "col_dt_fsp_4", "col_t_fsp_1", "col_t_fsp_4"}


@pytest.mark.service
@pytest.mark.parametrize(("kind", "text"), [("enum", "a"), ("set", "a")])
def test_a_member_that_the_target_lacks_is_refused(mariadb_feed: Feed, kind: str, text: str) -> None:
    """By its number it would be another one."""
    feed = mariadb_feed.with_(source=LOSSY)
    feed.make_database("d", f"CREATE TABLE t (id INT PRIMARY KEY, x {kind.upper()}('b','c'))")
    fields = [
        {"tidb_type": "int", "field": "id"},
        {"tidb_type": kind, "field": "x", "parameters": {"allowed": "a,b"}},
    ]
    value = {
        "payload": {
            "source": {"connector": "TiCDC", "db": "d", "table": "t", "commit_ts": at(3)},
            "op": "c",
            "after": {"id": 1, "x": text},
        },
        "schema": {"fields": [{"field": "after", "fields": fields}]},
    }
    key = {"payload": {"id": 1}}
    feed.send([Message("ticdc", 0, encoded(value), encoded(key)), *as_debezium(watermarks(4))])
    assert "none of its 2 members" in feed.failing(TargetError).fact
    assert feed.cells.tables(["d"])["d.t"][1] == []
