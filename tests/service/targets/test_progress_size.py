"""What servers are sent for a commit inside a window of a changefeed with 10,000 partitions, and hold after it."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from ordering.progress import Progress
from sinks.bookkeeping.progress_rows import Lease
from sinks.registry import open_target
from sinks.rows.spool import Spool
from sinks.rows.values import ValueRules
from tests.sinks.test_saving import LARGE, MOST_BYTES, inside

pytestmark = pytest.mark.service


def counting(run: Callable[..., int], sent: list[int]) -> Callable[..., int]:
    def counted(sql: str, parameters: Sequence[Any] | None = None) -> int:
        sent[-1] += len(sql) + sum(len(str(value)) for value in parameters or ())
        return run(sql, parameters)

    return counted


@pytest.mark.parametrize("kind", ["mariadb", "postgres", "tidb"])
def test_commits_inside_a_window_send_and_hold_what_moved(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    uri = request.getfixturevalue(f"{kind}_server").uri
    changefeed, sent = f"large-{uuid4().hex[:8]}", [0]
    with closing(open_target(uri, ValueRules())) as target:
        target.connect()
        lease = Lease(changefeed, target.claim(changefeed, LARGE).epoch)
        monkeypatch.setattr(target.session.db, "run", counting(target.session.db.run, sent))
        for progress in (LARGE, *inside(LARGE, 3)):
            sent.append(0)
            with Spool() as nothing:
                target.apply(nothing, progress, lease, lambda _: None)
            assert held(uri, changefeed) == progress
        size = "SELECT length(offsets) + length(state) FROM ticdc_reconciler.checkpoint WHERE changefeed = ?"
        ((row,),) = target.session.book.query(size, (changefeed,))
    _, whole, kept, *others = sent
    assert 1_000_000 < whole < kept < whole + MOST_BYTES
    assert max(*others, row) < MOST_BYTES


def held(uri: str, changefeed: str) -> Progress:
    """What another connection finds."""
    with closing(open_target(uri, ValueRules())) as other:
        found = other.stored(changefeed)
        assert found is not None
        return found.progress
