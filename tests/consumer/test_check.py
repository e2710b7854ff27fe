"""What `check` refuses without asking any server."""

from pathlib import Path

import pytest

from consumer.check import findings
from consumer.config import config_from
from ordering.errors import ConfigError


@pytest.mark.parametrize(
    ("consistency", "master", "refused"),
    [("row", "spark://far:7077", True), ("snapshot", "spark://far:7077", False), ("row", "local[2]", False)],
)
def test_tasks_on_other_machines_cannot_write_sqlite(
    consistency: str, master: str, refused: bool, tmp_path: Path
) -> None:
    values = {
        "changefeed": "c",
        "source": {"bootstrap-servers": "nowhere:9092", "topics": ["t"]},
        "target": {"uri": f"sqlite:///{tmp_path}/out", "consistency": consistency},
        "spark": {"master": master},
    }
    found = next(f for f in findings(config_from(values, "test")) if f.subject == "target")
    assert isinstance(found.error, ConfigError) == refused
