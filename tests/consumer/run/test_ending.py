"""A run that ends: what closes it is no trouble that a status should tell of."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from consumer.config.model import config_from
from consumer.run.runner import Runner


def test_the_end_of_a_run_is_no_trouble(tmp_path: Path) -> None:
    """Closing takes a while on a busy machine; the API showed `a bug: Stopped` meanwhile."""
    values = {
        "changefeed": "x",
        "source": {"bootstrap-servers": "127.0.0.1:1", "topics": ["t"]},
        "target": {"uri": f"sqlite:///{tmp_path}"},
    }
    display: Any = SimpleNamespace(left=lambda _: None)
    runner = Runner(config_from(values, "here"), display, spark=cast("Any", SimpleNamespace()))
    seen: list[BaseException | None] = []
    runner._session = cast("Any", SimpleNamespace(end=lambda: seen.append(runner.trouble)))
    runner._close()
    assert seen == [None]
