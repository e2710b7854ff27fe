"""What TiCDC itself leaves out of a history under a filter is what the same filter leaves out here.

`filters.plain` is the whole history, `filters.filtered` what TiCDC sent of it under `filters.toml`. The recording was
made without the part of TiCDC that judges DDLs by event filters, and RENAMEs by their old names.
"""

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from consumer.codec.canal_json import KINDS, WATERMARK
from consumer.config.changefeed_filter import ChangefeedFilter, read_filter
from consumer.config.table_sections import FilterSection
from consumer.ddl.policy import understood, why_ignored
from consumer.demo.fake_ticdc.producer import vector_messages
from consumer.tasks.report import RawDdl
from ordering.events import Position, TableName
from sinks.rows.schema import Catalog, Column, Shape, TableSchema

VECTORS = Path(__file__).parents[2] / "vectors"
PLACE = Position("ticdc", 0, 0)
WORKER = TableName("shop", "worker")
MEMBERS = {"kind": ("a", "B", "c"), "tags": ("x", "y", "z")}
Told = dict[str, Any]


@pytest.fixture
def wanted() -> FilterSection:
    """The filter that TiCDC had."""
    values = tomllib.loads((VECTORS / "filters.toml").read_text())
    return FilterSection.model_validate({**values["filter"], "case-sensitive": values["case-sensitive"]})


def messages(name: str, *, rows: bool) -> Iterator[tuple[bytes, Told]]:
    for message in vector_messages(VECTORS / f"filters.{name}.jsonl.gz"):
        told = json.loads(message.value)
        if told["type"] != WATERMARK and told["isDdl"] is not rows:
            yield message.value, told


def kept(name: str, *, rows: bool, unless: Callable[[bytes, Told], object] = lambda *_: False) -> Counter[str]:
    """The events of a recording, but for what is left out."""
    what = ("type", "database", "table", "sql", "data", "old")
    return Counter(json.dumps([told[n] for n in what]) for v, told in messages(name, rows=rows) if not unless(v, told))


def catalog() -> Catalog:
    columns = tuple(Column(name, name, Shape.ENUM, members=members) for name, members in MEMBERS.items())
    return Catalog({WORKER: TableSchema(WORKER, columns, ("id",), (("id",),))})


def test_rows(wanted: FilterSection) -> None:
    found = read_filter(wanted)
    events = found.for_rows(catalog())
    assert events is not None

    def is_ignored(value: bytes, told: Told) -> bool:
        name = (told["database"], told["table"])
        return not found.tables(*name) or events.ignores_row(KINDS[told["type"]], name, value, lambda: PLACE)

    theirs = kept("filtered", rows=True)
    assert kept("plain", rows=True, unless=is_ignored) == theirs
    assert theirs.total() < kept("plain", rows=True).total()


def test_ddls_by_table(wanted: FilterSection) -> None:
    tables = read_filter(wanted.model_copy(update={"event_filters": []}))

    def is_ignored(_: bytes, told: Told) -> str:
        return ignored(told, tables) or ("renamed away" if "TO `other`" in told["sql"] else "")

    assert kept("plain", rows=False, unless=is_ignored) == kept("filtered", rows=False)


def ignored(told: Told, by: ChangefeedFilter) -> str:
    fields = (told["type"], told["database"], told["table"], told["sql"])
    ddl = understood(RawDdl(PLACE, told["_tidb"]["commitTs"], *fields), catalog(), [])
    return why_ignored(ddl, [ddl], by, catalog())
