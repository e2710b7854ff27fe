"""Plays a recorded script into a target in this process and compares every cell with TiDB's."""

from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from consumer.demo.upstream.changefeed import Message
from tests.service.cells import Cells, Oracle, differences
from tests.service.local import LocalFeed


def played(
    messages: Sequence[Message], upstream: Oracle, uri: str, cells: Cells, place: Path, consistency: str
) -> list[str]:
    """What is wrong with the target afterwards, a line each. Raises ReconcilerError where it stops."""
    feed = LocalFeed(None, "nowhere:1", f"local-{uuid4().hex[:12]}", uri, cells, place)  # type: ignore[arg-type]
    feed.with_(target={"invalid-dates": "null", "consistency": consistency})
    feed.send(messages)
    feed.apply()
    left = [f"{name}: not upstream" for name in feed.cells.tables({"ha"}) if not upstream]
    return [*differences(upstream, feed.cells), *left]
