"""A history in Kafka, a target that is to follow it, and the oracle: what crash tests run on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.demo.fake_ticdc.database import Entry, Executed
from consumer.demo.fake_ticdc.oracle import snapshots
from consumer.demo.fake_ticdc.producer import produce
from sinks.steps import Step
from tests.bench.measure import write_config
from tests.faults.targets import Tables, View, comparable, view_of
from tests.forked import forked

_RUN_S = 120


@dataclass
class Oracle:
    """Every state of a history."""

    log: Sequence[Entry]
    states: list[tuple[int, Tables]] = field(init=False)

    def __post_init__(self) -> None:
        """Work the states out."""
        self.states = [(ts, comparable(tables)) for ts, tables in snapshots(self.log)]

    def acceptable(self, checkpoint: int, *, killed_at: str) -> list[Tables]:
        """The states in which a target with this checkpoint may be.

        A DDL at the checkpoint may still be to come. Where a DDL commits by itself, a crash right behind it shows it
        before the checkpoint tells.
        """
        at = max((i for i, (ts, _) in enumerate(self.states) if ts <= checkpoint), default=-1)
        found = [self._state(at)]
        while at >= 0 and self.states[at][0] == checkpoint and isinstance(self.log[at], Executed):
            at -= 1
            found.append(self._state(at))
        if killed_at == Step.DDL_EXECUTED.value:
            found += [tables for (ts, tables) in self.states if ts > checkpoint][:1]
        return found

    def _state(self, at: int) -> Tables:
        return self.states[at][1] if at >= 0 else {}

    @property
    def final(self) -> Tables:
        """The last state."""
        return self.states[-1][1]


@dataclass
class Story:
    """One changefeed on one target; `run` starts it in a process of its own."""

    place: Path
    view: View
    config: Path
    environment: Mapping[str, str]

    @classmethod
    def of(
        cls,
        place: Path,
        messages: Sequence[Message],
        *,
        bootstrap: str,
        uri: str,
        database: str,
        environment: Mapping[str, str],
        extra: str = "",
    ) -> "Story":
        """Send the messages to a topic of its own, and write the config."""
        name = f"story-{uuid4().hex[:8]}"
        partitions = 1 + max(message.partition for message in messages)
        produce([m._replace(topic=name) for m in messages], bootstrap, partitions=partitions)
        if uri.startswith("sqlite"):
            uri = f"{uri}/{name}"
        config = write_config(
            place / f"{name}.toml", changefeed=name, bootstrap=bootstrap, topic=name, uri=uri, extra=extra
        )
        return cls(place, view_of(uri, database, name), config, environment)

    def run(self, step: str = "none", nth: int = 1) -> tuple[int, str]:
        """Run it, with a crash at the n-th `step`; returns the exit code and what it printed."""
        arguments = (str(self.config), step, str(nth))
        done = forked("tests.faults.crashing_run", "crashing_run", arguments, self.environment, _RUN_S)
        return done.returncode, done.stdout + done.stderr

    def totals(self, printed: str) -> dict[str, int]:
        """The changefeed's totals that an undisturbed run printed."""
        line = next(line for line in reversed(printed.splitlines()) if line.startswith("{"))
        totals: dict[str, int] = json.loads(line)
        return totals
