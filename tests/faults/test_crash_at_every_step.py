"""SIGKILL after every step of a round: the target is never between two upstream states, and ends as if undisturbed.

The crashes of one test are a chain: each run goes on where the last one died, so restarts meet what crashes left.
"""

import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from consumer.demo.fake_ticdc.bank import Bank
from consumer.demo.fake_ticdc.changefeed import Changefeed
from consumer.demo.fake_ticdc.database import Executed
from consumer.demo.fake_ticdc.ddl import TruncateTable
from consumer.embedded import KafkaBroker
from sinks.steps import Step
from tests.cells import seed
from tests.faults.story import Oracle, Story

pytestmark = [pytest.mark.service, pytest.mark.spark]

IN_TASKS = {Step.WINDOW_RECORDED, Step.DELETES_DONE, Step.WRITES_DONE}
IN_ONE_TRANSACTION = {Step.REDUCED, Step.APPLY_BEGUN, Step.ROWS_WRITTEN, Step.PROGRESS_WRITTEN}
DDL_STEPS = [Step.DDL_RECORDED.value, Step.DDL_EXECUTED.value, Step.DDL_DONE.value]
TARGETS = ("sqlite", "mysql", "postgresql", "tidb")
EVERY_WORLD = [*product(TARGETS[:-1], ("snapshot", "transaction", "row")), ("tidb", "row")]
SMALL_WINDOWS = "[limits]\nwindow-rows = 90\n"


def steps(consistency: str) -> list[str]:
    unused = IN_ONE_TRANSACTION if consistency == "row" else IN_TASKS
    return [step.value for step in Step if step not in unused]


def of_this_run(target: str, consistency: str) -> list[tuple[int, str]]:
    """Every third step, with its number; the others are met with the next kinds of target, or by another commit.

    Steps that only tasks take are met each time, and all of them in the long test below.
    """
    shift = random.Random(seed()).randrange(3) + TARGETS.index(target)
    told = enumerate(steps(consistency))
    return [(at, step) for at, step in told if (at + shift) % 3 == 0 or Step(step) in IN_TASKS]


@dataclass
class Servers:
    bootstrap: str
    uri_of: Callable[[str], str]
    place: Path
    environment: dict[str, str]

    def story(self, bank: Bank, feed: Changefeed, target: str, consistency: str) -> Story:
        return Story.of(
            self.place,
            list(feed.messages(bank.database.log)),
            bootstrap=self.bootstrap,
            uri=self.uri_of(target),
            database=bank.accounts[0].database,
            environment=self.environment,
            extra=f'consistency = "{consistency}"\n{SMALL_WINDOWS}',
        )


@pytest.fixture
def servers(
    kafka_broker: KafkaBroker, uri_of: Callable[[str], str], tmp_path: Path, environment: dict[str, str]
) -> Servers:
    return Servers(kafka_broker.bootstrap, uri_of, tmp_path, environment)


def crashed(story: Story, oracle: Oracle, step: str, nth: int) -> None:
    """Run with a crash; whatever it left is a state that the upstream had, at the checkpoint that stands beside it.

    But for a window that tasks were writing (`row`): that is done again by the next run.
    """
    code, printed = story.run(step, nth)
    assert code == -signal.SIGKILL, f"{step} {nth} was not reached: exit {code}\n{printed[-3000:]}"
    checkpoint, tables = story.view.state()
    if step not in {written.value for written in IN_TASKS}:
        assert tables in oracle.acceptable(checkpoint, killed_at=step), (step, nth, checkpoint, tables)


def finished(story: Story, oracle: Oracle) -> dict[str, int]:
    """Run to the end; the target is what the upstream holds."""
    code, printed = story.run()
    assert code == 0, printed[-3000:]
    checkpoint, tables = story.view.state()
    assert tables == oracle.final
    assert checkpoint == oracle.log[-1].commit_ts + 1
    story.view.drop()
    return story.totals(printed)


def rows_and_ddls(bank: Bank, feed: Changefeed) -> dict[str, int]:
    values = [message.value for message in feed.messages(bank.database.log)]
    ddls = sum(b'"isDdl":true' in value for value in values)
    watermarks = sum(b"TIDB_WATERMARK" in value for value in values)
    return {"events": len(values) - ddls - watermarks, "ddls": ddls, "duplicates": 0}


@pytest.mark.cells(by_turns=("target", "consistency"))
@pytest.mark.parametrize(("target", "consistency"), EVERY_WORLD)
def test_a_crash_after_any_step(target: str, consistency: str, servers: Servers, database_prefix: str) -> None:
    bank = Bank(11, accounts=10, ddl=0.12, name=database_prefix + "bank").run(180)
    feed = Changefeed(seed=11, watermark_every=4)
    story, oracle = servers.story(bank, feed, target, consistency), Oracle(bank.database.log)
    for number, step in of_this_run(target, consistency):
        crashed(story, oracle, step, 1 + number % 2)
    assert finished(story, oracle) == rows_and_ddls(bank, feed)


@pytest.mark.cells(by_turns=("target",))
@pytest.mark.parametrize(("target", "consistency"), EVERY_WORLD[:-1])
def test_rows_inserted_after_a_truncate_survive_crashes_in_it(
    target: str, consistency: str, servers: Servers, database_prefix: str
) -> None:
    bank = Bank(41, accounts=4, tables=3, ddl=0.3, name=database_prefix + "bank").run(40)
    ddls = [entry.ddl for entry in bank.database.log if isinstance(entry, Executed)]
    truncate = next(i for i, ddl in enumerate(ddls) if isinstance(ddl, TruncateTable))
    story, oracle = servers.story(bank, Changefeed(seed=5), target, consistency), Oracle(bank.database.log)
    crashed(story, oracle, DDL_STEPS[0], truncate + 1)
    crashed(story, oracle, DDL_STEPS[1], 1)
    crashed(story, oracle, DDL_STEPS[2], 1)
    crashed(story, oracle, Step.COMMITTED.value, 1)
    finished(story, oracle)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("target", "consistency", "step"), [(*world, step) for world in EVERY_WORLD for step in steps(world[1])]
)
def test_a_crash_that_takes_the_jvm_along(
    target: str,
    consistency: str,
    step: str,
    kafka_broker: KafkaBroker,
    uri_of: Callable[[str], str],
    tmp_path: Path,
    database_prefix: str,
) -> None:
    """From an empty target each, with a JVM of its own that dies with the driver."""
    servers = Servers(kafka_broker.bootstrap, uri_of, tmp_path, dict(os.environ))
    bank = Bank(12, accounts=8, ddl=0.1, name=database_prefix + "bank").run(60)
    feed = Changefeed(seed=12, watermark_every=4, restart_every=3)
    story, oracle = servers.story(bank, feed, target, consistency), Oracle(bank.database.log)
    crashed(story, oracle, step, 2)
    crashed(story, oracle, step, 1)
    finished(story, oracle)
