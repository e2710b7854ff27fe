"""A place to try every command: Kafka, Redis and an upstream that keeps writing, until the user ends it.

Unlike the demo it starts no reconciler. The user does, in another terminal, with the config that it writes.
"""

import shutil
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from consumer.demo.environment import interruptible, new_directory, running
from consumer.demo.live_upstream import TOPIC, LiveUpstream
from consumer.embedded import EmbeddedError, KafkaBroker, RedisServer
from consumer.embedded.jars import jar_directory
from consumer.runtime.terminal import say
from ordering.errors import ConfigError

_PACE = 20
"""Transactions a second, about 100 messages: enough to watch, little enough for an hour on a laptop."""
_TICK_S = 0.2
_SHOWN_EVERY_S = 10.0

_CONFIG = """\
changefeed = "bank"

[source]
bootstrap-servers = "{bootstrap}"
topics = ["{topic}"]

[target]
uri = "sqlite:///{target}"

[redis]
uri = "{redis}"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOptions:
    """What the user may choose."""

    directory: Path
    minutes: float = 60.0
    seed: int = 1


def open_sandbox(options: SandboxOptions) -> int:
    """Run the servers and the upstream until Ctrl-C or until the time is over; 0.

    Raises ConfigError where the machine can't provide what is needed, SourceError if Kafka takes no more messages.
    """
    directory = new_directory(options.directory, "DIRECTORY")
    kafka, redis = KafkaBroker(directory / "kafka"), RedisServer(directory / "redis")
    try:
        with interruptible():
            jar_directory("kafka", say)
            say("starting Kafka and Redis")
            with running([kafka, redis]):
                _write(options, directory, kafka, redis)
    except EmbeddedError as error:
        detail = f"\n{error.detail}" if error.detail else ""
        raise ConfigError(f"{error.fact}{detail}", hint=error.hint) from error
    except KeyboardInterrupt:
        pass  # this is how the user ends it
    for name in ("kafka", "redis"):
        shutil.rmtree(directory / name, ignore_errors=True)
    say(f"ended; kept: {directory}/changefeeds, {directory}/target")
    return 0


def _write(options: SandboxOptions, directory: Path, kafka: KafkaBroker, redis: RedisServer) -> None:
    config = directory / "changefeeds" / "bank.toml"
    config.parent.mkdir()
    text = _CONFIG.format(bootstrap=kafka.bootstrap, topic=TOPIC, target=directory / "target", redis=redis.uri)
    config.write_text(text, encoding="utf-8")
    upstream = LiveUpstream(kafka.bootstrap, seed=options.seed, dispatcher="index-value", raw=False, pace=_PACE)
    with closing(upstream):
        upstream.start()
        say(f"a bank writes {_PACE} transactions a second until Ctrl-C, at most {options.minutes:g} minutes")
        say(f"config: {options.directory / config.relative_to(directory)}")
        _watch(upstream, options.minutes * 60)


def _watch(upstream: LiveUpstream, seconds: float) -> None:
    """Show now and then what was sent, until the time is over."""
    end = time.monotonic() + seconds
    shown = time.monotonic()
    while (now := time.monotonic()) < end:
        upstream.check()
        if now - shown >= _SHOWN_EVERY_S:
            shown, tally = now, upstream.tally
            say(f"sent: {tally.rows:,} row messages, {tally.repeats:,} of them repeated, {tally.ddls:,} DDLs")
        time.sleep(_TICK_S)
