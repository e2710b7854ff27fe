"""What an operator may decide: that a topic gets no more messages (R6); what becomes of a DDL that fails."""

from contextlib import closing
from dataclasses import replace

from consumer.config.model import Config
from consumer.kafka.admin import KafkaAdmin, retired_ends
from consumer.operate.progress import opened, refuse_living_leader, stored_of
from consumer.wiring import target_of
from ordering.errors import ConfigError
from ordering.progress import Progress, TopicProgress
from sinks.bookkeeping.ddl_log import DECIDED, DdlRecord, DdlState
from sinks.bookkeeping.progress_rows import Lease, Stored
from sinks.rows.spool import Spool
from sinks.target import Target


def retire_topic(config: Config, topic: str) -> None:
    """Let a topic no longer hold back the others. A running instance loses its leadership by it.

    What comes to the topic from now on is refused. Raises ConfigError if the changefeed doesn't know the topic, and
    SourceError.
    """
    _set_retired(config, topic, retired=True)


def return_topic(config: Config, topic: str) -> None:
    """Let a retired topic count again. Raises as `retire_topic`, and ConfigError if it is not retired."""
    _set_retired(config, topic, retired=False)


def _set_retired(config: Config, topic: str, *, retired: bool) -> None:
    with opened(config) as target:
        known = _known(target.stored(config.changefeed), config.changefeed, topic)
        if not retired and not known.topics[topic].retired:
            names = ", ".join(sorted(name for name, one in known.topics.items() if one.retired)) or "none"
            raise ConfigError(f"topic {topic!r} is not retired", hint=f"retired topics: {names}")
        there = _looked_at(config, topic)
        claimed = target.claim(config.changefeed, known)
        progress = claimed.progress
        known_ends = progress.topics[topic].retired_to  # of one that is gone
        ends = {} if not retired else known_ends if there is None else there[1]
        if there is not None and there[0] != progress.topics[topic].id:
            progress = _of_another(progress, topic, there[0])
        if not retired:
            progress = _counting_again(progress, topic)
        topics = {**progress.topics, topic: replace(progress.topics[topic], retired=retired, retired_to=ends)}
        with Spool() as nothing:
            lease = Lease(config.changefeed, claimed.epoch)
            target.apply(nothing, replace(progress, topics=topics), lease, lambda _: None)


def _counting_again(progress: Progress, topic: str) -> Progress:
    """The progress for which the partitions of a retired topic are new: the checkpoint did not wait for them."""
    partitions = {p: replace(at, is_new=at.is_new or p.topic == topic) for p, at in progress.partitions.items()}
    return replace(progress, partitions=partitions)


def _looked_at(config: Config, topic: str) -> tuple[str, dict[int, int]] | None:
    """A topic's id and where its log ends now; None of one that is gone."""
    if config.source.storage:
        raise ConfigError("files have no topics", where=config.source.storage)
    with closing(KafkaAdmin(config.source.bootstrap_servers, config.source.kafka)) as control:
        return next(((found.id, retired_ends(control, found)) for found in control.topics([topic])), None)


def _of_another(progress: Progress, topic: str, topic_id: str) -> Progress:
    """The progress with a topic that was created again under its name: nothing of this one was read.

    Raises ConfigError while the one that is gone held messages that were to be applied.
    """
    before = progress.topics[topic]
    read = {p.partition: at.start for p, at in progress.partitions.items() if p.topic == topic}
    left = any(read.get(number, 0) < end for number, end in before.retired_to.items())
    if not before.retired or left:
        raise ConfigError(
            f"topic {topic} was deleted and created again"
            + (", before all was applied that it held when it was retired" if left else ", and was not retired before"),
            where=f"topic={topic}",
            hint="rows may be missing in the target: rebuild it from a dump, or verify it and reset the progress",
        )
    partitions = {p: at for p, at in progress.partitions.items() if p.topic != topic}
    return replace(progress, partitions=partitions, topics={**progress.topics, topic: TopicProgress(topic_id)})


def decide_ddl(config: Config, commit_ts: int, decision: DdlState, reason: str) -> DdlRecord:
    """Decide about the DDL at `commit_ts` that stops the changefeed, for its next run; returns its line of the log.

    Raises ConfigError if no such DDL stops it, LeadershipLostError while another instance runs.
    """
    with opened(config) as target:
        stored = stored_of(config, target)
        line = _stopping(target, config.changefeed, stored, commit_ts)
        refuse_living_leader(config, target)
        claimed = target.claim(config.changefeed, stored.progress)
        # what ran until a moment ago may have ended it
        line = _stopping(target, config.changefeed, claimed, commit_ts)
        target.decide_ddl(line, decision, reason, Lease(config.changefeed, claimed.epoch))
        return line


def ddl_log(config: Config, limit: int) -> list[DdlRecord]:
    """The latest DDLs: those that stop it first, then the newest."""
    target = target_of(config)
    try:
        stored = target.stored(config.changefeed)
        checkpoint_ts = 0 if stored is None else stored.progress.checkpoint_ts
        return [] if stored is None else target.ddl_log.told(config.changefeed, limit, checkpoint_ts)
    finally:
        target.close()


def _stopping(target: Target, changefeed: str, stored: Stored, commit_ts: int) -> DdlRecord:
    """The line of the DDL that is next, failed or begun without an end; of one that was decided about, too."""
    checkpoint = stored.progress.checkpoint_ts
    unsettled = target.ddl_log.unsettled(changefeed)
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
