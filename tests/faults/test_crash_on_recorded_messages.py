"""Crashes while TiCDC's own messages are applied: recorded from its encoder, replays after its restarts included."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.demo.fake_ticdc.producer import vector_messages
from consumer.embedded import KafkaBroker
from sinks.steps import Step
from tests.faults.story import Story
from tests.faults.targets import Tables, comparable

pytestmark = [pytest.mark.service, pytest.mark.spark]

VECTORS = Path(__file__).parent.parent / "vectors"
SUMS = {0, 60_000, 120_000, 180_000}
"""What the balances add up to after each of the three transactions that open the bank, and ever after."""

CRASHES = [(Step.ROWS_WRITTEN, 2), (Step.PROGRESS_WRITTEN, 3), (Step.COMMITTED, 2), (Step.PUBLISHED, 2)]
WORLDS = [
    ("index-value.restarts", "mysql", "snapshot"),
    *(
        pytest.param(recording, target, consistency, marks=pytest.mark.soak)
        for recording in ("index-value.restarts", "index-value.raw", "index-value.split", "table.raw", "table.split")
        for target in ("mysql", "postgresql", "sqlite")
        for consistency in ("snapshot", "transaction")
        if (recording, target, consistency) != ("index-value.restarts", "mysql", "snapshot")
    ),
]


def in_database(message: Message, database: str) -> Message:
    """The message with the bank in a database of another name."""
    value = message.value.replace(b'"database":"bank"', b'"database":"%b"' % database.encode())
    return message._replace(value=value.replace(b"DATABASE `bank`", b"DATABASE `%b`" % database.encode()))


def upstream(database: str) -> Tables:
    """What TiDB held at the end."""
    recorded: dict[str, Any] = json.loads((VECTORS / "bank.upstream.json").read_text())
    return comparable(
        {
            name.replace("bank", database, 1): {
                i: dict(zip(table["columns"], row, strict=True)) for i, row in enumerate(table["rows"])
            }
            for name, table in recorded.items()
        }
    )


def total(tables: Tables) -> int:
    return sum(int(dict(row)["bal"] or 0) for rows in tables.values() for row in rows)


@pytest.mark.by_turns
@pytest.mark.parametrize(("recording", "target", "consistency"), WORLDS)
def test_recorded_messages_end_as_upstream(
    recording: str,
    target: str,
    consistency: str,
    kafka_broker: KafkaBroker,
    uri_of: Callable[[str], str],
    environment: dict[str, str],
    tmp_path: Path,
    database_prefix: str,
) -> None:
    database = f"{database_prefix}bank"
    recorded = vector_messages(VECTORS / f"bank.{recording}.jsonl.gz")
    story = Story.of(
        tmp_path,
        [in_database(message, database) for message in recorded],
        bootstrap=kafka_broker.bootstrap,
        uri=uri_of(target),
        database=database,
        environment=environment,
        extra=f'consistency = "{consistency}"\n[limits]\nwindow-rows = 1500\n',
    )
    for step, nth in CRASHES:
        code, printed = story.run(step.value, nth)
        assert code == -signal.SIGKILL, f"{step} was not reached: exit {code}\n{printed[-3000:]}"
        assert total(story.view.state()[1]) in SUMS, step
    code, printed = story.run()
    assert code == 0, printed[-3000:]
    assert story.view.state()[1] == upstream(database)
    story.view.drop()
