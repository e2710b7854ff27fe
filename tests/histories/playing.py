"""Plays a recorded history into a target in this process, and compares the rows with upstream's."""

from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from consumer.demo.upstream.changefeed import Message
from tests.service.cells import Cells, Oracle, differences
from tests.service.local import LocalFeed

WINDOWS = (1, 3, 40, 1_000_000)
"""Rows that a window may hold."""


def played(
    messages: Sequence[Message], upstream: Oracle, uri: str, cells: Cells, place: Path, *, window_rows: int
) -> list[str]:
    """What is wrong with the target afterwards, a line each. Raises ReconcilerError."""
    feed = LocalFeed(None, "nowhere:1", f"local-{uuid4().hex[:12]}", uri, cells, place)  # type: ignore[arg-type]
    feed.with_(target={"invalid-dates": "null"}, limits={"window-rows": window_rows}).send(messages)
    feed.apply()
    wrong = differences(upstream, feed.cells)
    feed.send(messages)
    feed.apply()
    return wrong or differences(upstream, feed.cells)
