"""What the compiled core makes of the Simple protocol is what Python makes of it: events, errors, schemas, bytewise."""

import json
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from consumer import native
from consumer.codec.canal_json import Plain
from consumer.native import MOST_COLUMNS, Core
from ordering.errors import CoreError
from tests.consumer.native.building import built
from tests.consumer.native.in_place import FakeShelf
from tests.consumer.native.simple_fuzz import check, outcome_of
from tests.consumer.native.test_core_equal import sanitized_run

SECONDS = 3.0
COLUMNS = {"id": "int", "v": "varchar", "b": "varbinary", "at": "timestamp"}


@pytest.fixture(autouse=True)
def _this_core(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "LIBRARY", core.path)


def test_random_messages_agree(core: Core) -> None:
    """As many as fit some seconds, other ones each day: a failure names its seed."""
    first, until = int(time.time() // 86_400) * 10_000_000, time.monotonic() + SECONDS
    shelf, events, cases = FakeShelf(core), 0, 0
    while time.monotonic() < until or not events:
        events += check(first + cases, core, shelf)
        cases += 1
    assert events >= cases, "most cases hold nothing that the core could take"


@pytest.mark.soak
def test_a_million_random_cases_agree(core: Core) -> None:
    shelf = FakeShelf(core)
    for seed in range(1_000_000):
        check(seed, core, shelf)


@pytest.mark.by_turns
def test_it_stays_within_its_bounds(tmp_path: Path) -> None:
    sanitized_run(tmp_path, 100, "simple_fuzz")


@pytest.mark.soak
def test_it_stays_within_its_bounds_for_long(tmp_path: Path) -> None:
    sanitized_run(tmp_path, 200_000, "simple_fuzz")


def bootstrap(columns: dict[str, str], version: int = 5, table: str = "t") -> bytes:
    key = {"name": "primary", "unique": True, "primary": True, "nullable": False, "columns": ["id"]}
    told = [{"name": name, "dataType": {"mysqlType": kind}, "nullable": True} for name, kind in columns.items()]
    schema = {"schema": "d", "table": table, "tableID": 1, "version": version, "columns": told, "indexes": [key]}
    return encoded({"version": 1, "type": "BOOTSTRAP", "commitTs": 0, "buildTs": 1, "tableSchema": schema})


def encoded(told: dict[str, Any]) -> bytes:
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()


def row(kind: str, n: int, *, version: int = 5, **more: Any) -> bytes:
    """A row event; its binary value and its TIMESTAMP as TiCDC sends them."""
    at = {"location": "UTC", "value": f"2026-01-02 03:04:{n % 60:02}.25"}
    image = {"at": at, "b": b64encode(bytes([n, 0x80 + n, 10])).decode(), "id": str(n), "v": 'é<\\"\n'[: n + 1]}
    told = {"version": 1, "database": "d", "table": "t", "tableID": 1, "type": kind, "commitTs": 9 + n, "buildTs": 1}
    told |= {"schemaVersion": version}
    told |= {"data": image} if kind != "DELETE" else {}
    told |= {"old": image} if kind != "INSERT" else {}
    return encoded({**told, **more})


def by_core(values: list[bytes]) -> int:
    """How many of these events the core gives; all are what Python makes of them."""
    runs = [[Plain(offset, value) for offset, value in enumerate(values)]]
    found, count = outcome_of(runs, True)
    assert found == outcome_of(runs, False)[0]
    assert len(found.events) == len(values)
    return count


def test_what_is_usual_is_taken() -> None:
    """All but the schema and the first two rows: else nothing would be gained."""
    rows = [row(kind, n) for n in range(5) for kind in ("INSERT", "UPDATE", "DELETE")]
    assert by_core([bootstrap(COLUMNS), *rows]) == len(rows) - 2
    plain = {"id": "int", "v": "varchar", "b": "text", "at": "text"}
    texts = [row("INSERT", n, data={"at": None, "b": "é\\u003c", "id": "1", "v": "\t"}) for n in range(4)]
    assert by_core([bootstrap(plain), *texts]) == len(texts) - 2


@pytest.mark.parametrize(
    "more",
    [
        {"schemaVersion": 6},
        {"checksum": {"version": 1, "corrupted": False, "current": 1, "previous": 0}},
        {"handleKeyOnly": True},
        {"claimCheckLocation": "/x"},
        {"version": 2},
        {"commitTs": 0},
        {"data": {"id": "1", "nope": "x"}},
        {"data": {"id": 1}},
        {"data": {"id": "1", "at": {"location": "Asia/Tokyo", "value": "2026-01-02 03:04:05"}}},
        {"data": {"id": "1", "at": {"location": "UTC", "value": "0000-00-00 00:00:00"}}},
        {"data": {"id": "1", "at": "2026-01-02 03:04:05"}},
        {"data": {"id": "1", "b": "AA"}},
        {"data": {"id": "1", "b": "AA=A"}},
        {"type": "TRUNCATE"},
    ],
)
def test_what_is_unusual_is_left_to_python(more: dict[str, Any]) -> None:
    """And the core goes on behind it."""
    usual = [row("INSERT", n) for n in range(4)]
    assert by_core([bootstrap(COLUMNS), *usual, row("INSERT", 9, **more), *usual]) == 6


def test_rows_of_several_versions_and_tables_are_told_apart() -> None:
    other = {**COLUMNS, "v": "text"}
    values = [bootstrap(COLUMNS), bootstrap(other, 7), bootstrap(COLUMNS, 5, "t2"), bootstrap(COLUMNS, 5, "2")]
    values += [
        row("INSERT", n, version=version, table=table)
        for n in range(20)
        for version, table in ((5, "t"), (7, "t"), (5, "t2"), (5, "2"))
    ]
    assert by_core(values) >= 72


def test_columns_come_in_any_order() -> None:
    """In that of their names as TiCDC sends them; one that sends them otherwise must not make a wide table slow."""
    wide = {"id": "int", **{f"ü{n}": ("text", "timestamp")[n % 7 == 0] for n in range(900)}}
    image = {name: None if kind == "timestamp" else name for name, kind in wide.items()}
    orders = [image, dict(sorted(image.items())), dict(reversed(image.items()))]
    rows = [row("INSERT", n, data=orders[n % 3]) for n in range(9)]
    assert by_core([bootstrap(wide), *rows]) == len(rows) - 2


def test_a_table_with_odd_names_is_left_to_python() -> None:
    odd = [row("INSERT", n, data={"id": str(n), 'q"': "x"}) for n in range(4)]
    assert by_core([bootstrap({"id": "int", 'q"': "text"}), *odd]) == 0
    many = {"id": "int", **{f"c{n}": "text" for n in range(MOST_COLUMNS)}}
    assert by_core([bootstrap(many), *[row("INSERT", n, data={"id": "1"}) for n in range(3)]]) == 0


def test_a_crash_is_an_error_with_the_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fatal = row("INSERT", 8, data={"id": "x" * 50})
    monkeypatch.setattr(native._State, "crashed", False)
    monkeypatch.setattr(native, "LIBRARY", built(tmp_path, f"-DCORE_FAULT={len(fatal)}"))
    values = [bootstrap(COLUMNS), *(row("INSERT", n) for n in range(5)), fatal]
    with pytest.raises(CoreError, match="crashed") as caught:
        outcome_of([[Plain(offset, value) for offset, value in enumerate(values)]], True)
    assert caught.value.where.endswith("offset=6")
    assert "spark.native = false" in caught.value.hint
