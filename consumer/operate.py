"""What an operator may decide: that a topic is dead for good (R6), what becomes of a DDL that can't be executed."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from consumer.config import Config
from consumer.control import Control, retired_ends
from consumer.targets import target_of
from ordering.errors import ConfigError, LeadershipLostError
from ordering.progress import Progress
from sinks.ddl_log import DECIDED, DdlRecord, DdlState
from sinks.spool import Spool
from sinks.target import Lease, Stored, Target


def retire_topic(config: Config, topic: str, *, undo: bool = False) -> None:
    """Let a topic no longer hold back the others; `undo`: let it again. A running instance loses its leadership by it.

    What comes to the topic from now on is refused. Raises ConfigError if the changefeed doesn't know the topic, and
    SourceError.
    """
    with _connected(config) as target:
        known = _known(target.stored(config.changefeed), config.changefeed, topic)
        ends = {} if undo else _ends_of(config, topic)
        claimed = target.claim(config.changefeed, known)
        before = claimed.progress.topics
        topics = {**before, topic: replace(before[topic], retired=not undo, retired_to=ends)}
        with Spool() as nothing:
            lease = Lease(config.changefeed, claimed.epoch)
            target.apply(nothing, replace(claimed.progress, topics=topics), lease, lambda _: None)


def _ends_of(config: Config, topic: str) -> dict[int, int]:
    """Where a topic's log ends now; nothing of one that is gone."""
    with closing(Control(config.source.bootstrap_servers, config.source.kafka)) as control:
        return next((retired_ends(control, found) for found in control.topics([topic])), {})


def decide_ddl(config: Config, commit_ts: int, decision: DdlState, reason: str) -> DdlRecord:
    """Decide about the DDL at `commit_ts` that stops the changefeed, for its next run; returns its line of the log.

    Raises ConfigError if no such DDL stops it, LeadershipLostError while another instance runs.
    """
    with _connected(config) as target:
        stored = target.stored(config.changefeed)
        line = _stopping(target, config.changefeed, stored, commit_ts)
        if stored is None or target.is_led(config.changefeed):
            hint = "stop it first: what it is doing with this DDL can't be seen from here"
            raise LeadershipLostError(f"changefeed {config.changefeed!r} is running", where=target.name, hint=hint)
        claimed = target.claim(config.changefeed, stored.progress)
        # what ran until a moment ago may have ended it
        line = _stopping(target, config.changefeed, claimed, commit_ts)
        target.decide_ddl(line, decision, reason, Lease(config.changefeed, claimed.epoch))
        return line


def ddl_log(config: Config, limit: int) -> list[DdlRecord]:
    """The latest DDLs, newest first."""
    target = target_of(config)
    try:
        return [] if target.stored(config.changefeed) is None else target.ddl_log(config.changefeed, limit)
    finally:
        target.close()


@contextmanager
def _connected(config: Config) -> Iterator[Target]:
    target = target_of(config)
    try:
        target.connect()
        yield target
    finally:
        target.close()


def _stopping(target: Target, changefeed: str, stored: Stored | None, commit_ts: int) -> DdlRecord:
    """The line of the DDL that is next, failed or torn; of one that was decided about, too."""
    checkpoint = 0 if stored is None else stored.progress.checkpoint_ts
    unsettled = target.open_ddls(changefeed)
    lines = [x for x in unsettled if x.commit_ts >= checkpoint and x.state != DdlState.RUNNING.value]
    found = [line for line in lines if line.commit_ts == commit_ts]
    if not found:
        names = ", ".join(f"{line.commit_ts} ({line.state})" for line in lines) or "none"
        hint = f"DDLs that stop it: {names}; `reconciler ddl list CONFIG` shows them"
        raise ConfigError(f"no DDL at commitTs {commit_ts} stops changefeed {changefeed!r}", hint=hint)
    decided = {state.value for state in DECIDED}
    return min(found, key=lambda line: line.state in decided)


def _known(stored: Stored | None, changefeed: str, topic: str) -> Progress:
    if stored is None or topic not in stored.progress.topics:
        names = ", ".join(sorted(stored.progress.topics)) if stored else "none: it has not run yet"
        raise ConfigError(f"changefeed {changefeed!r} has no topic {topic!r}", hint=f"it knows: {names}")
    return stored.progress
