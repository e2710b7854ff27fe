"""What an operator may decide: that a topic is dead for good (R6)."""

from dataclasses import replace

from consumer.config import Config
from consumer.targets import target_of
from ordering.errors import ConfigError
from ordering.progress import Progress
from sinks.spool import Spool
from sinks.target import Lease, Stored


def retire_topic(config: Config, topic: str) -> None:
    """Let a topic no longer hold back the others. A running instance of the changefeed loses its leadership by this.

    Raises ConfigError if the changefeed doesn't know the topic.
    """
    target = target_of(config)
    try:
        target.connect()
        known = _known(target.stored(config.changefeed), config.changefeed, topic)
        claimed = target.claim(config.changefeed, known)
        topics = {**known.topics, topic: replace(known.topics[topic], retired=True)}
        with Spool() as nothing:
            lease = Lease(config.changefeed, claimed.epoch)
            target.apply(nothing, replace(claimed.progress, topics=topics), lease, lambda _: None)
    finally:
        target.close()


def _known(stored: Stored | None, changefeed: str, topic: str) -> Progress:
    if stored is None or topic not in stored.progress.topics:
        names = ", ".join(sorted(stored.progress.topics)) if stored else "none: it has not run yet"
        raise ConfigError(f"changefeed {changefeed!r} has no topic {topic!r}", hint=f"it knows: {names}")
    return stored.progress
