"""A genuine recording of shards: TiCDC's messages of four tables and a fifth made LIKE one, merged in one.

`tests/vectors/merged/shards.sql.gz` was run by TiDB and sent by TiCDC's encoder, with restarts, and raw.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from consumer.demo.fake_ticdc.producer import vector_messages
from tests.histories.playing import KILLED_AT, played
from tests.service.cells import VECTORS, Oracle, oracle
from tests.service.ddl.test_ddl import TARGETS, made
from tests.service.local import LocalFeed

__all__ = ["made"]
pytestmark = pytest.mark.service
SINK: Mapping[str, Any] = {
    "dispatchers": [
        {
            "matcher": ["shop_*.*"],
            "target-schema": "shop",
            "target-table": "orders",
            "merge": True,
            "extract-schema": {"schema-regexp": "shop_(.*)", "target-column": "region"},
            "extract-table": {"table-regexp": "orders_(.*)", "target-column": "shard"},
        }
    ]
}


def union(upstream: Oracle) -> Oracle:
    """What the target has to hold: all rows of all shards, each with its origin."""
    tables = list(upstream.values())
    origins = [(name[len("shop_") : len("shop_xx")], name.rpartition("_")[2]) for name in upstream]
    rows = [[*row, *origin] for table, origin in zip(tables, origins, strict=True) for row in table["rows"]]
    columns, types = [*tables[0]["columns"], "region", "shard"], [*tables[0]["types"], "varchar(64)", "varchar(64)"]
    return {"shop.orders": {**tables[0], "columns": columns, "types": types, "rows": rows}}


@pytest.mark.cells(by_turns=("made", "consistency", "sent"))
@pytest.mark.parametrize("sent", ["restarts", "raw"])
@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_shards_as_ticdc_sends_them(made: LocalFeed, consistency: str, sent: str) -> None:
    messages = list(vector_messages(Path(VECTORS / "merged" / f"shards.index-value.{sent}.jsonl.gz")))
    upstream = union(oracle("merged/shards"))
    target = {"consistency": consistency, "invalid-dates": "null"}
    found = played(
        messages,
        upstream,
        made.uri,
        made.cells,
        made.directory,
        window_rows=1_000_000,
        seed=3,
        killed_at=KILLED_AT / 5 if consistency == "transaction" else KILLED_AT,  # it takes five times as many steps
        sink=SINK,
        target=target,
    )
    assert found == []
