"""The topics as the truth: what they hold up to C is applied to an empty target, as a run would, and compared.

They have to be what the run has read: a log that lost its end since would tell other rows, and they would be taken for
right. So the logs are compared with the progress before, to say so at once, and once all was read.

It shows what a target lost or got since, by whatever hand, not what a run always does wrong. The target made for it is
a directory of SQLite files, removed afterwards.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config, RedisSection, TargetSection
from consumer.config.routes import read_routes
from consumer.kafka.admin import End
from consumer.pipeline.round import Round
from consumer.pipeline.session import Session
from consumer.source.continuity import check_beginnings, check_kept
from consumer.source.file_source import FileSource
from consumer.source.offer import Probe
from consumer.source.port import ChangeSource
from consumer.source.probe import Source
from consumer.spark.context import start_spark, stop_spark
from consumer.spark.jobs import SparkJobs
from consumer.tasks.jobs import Jobs
from consumer.verify.sides import Side
from consumer.wiring import readers_of, storage_of, target_of
from ordering.errors import ConfigError, InputError
from ordering.events import Partition
from ordering.progress import Progress, TopicProgress
from ordering.timestamps import BEGINNING, ResolvedTs, utc_text

_HINT = "compare with the upstream: set source.upstream.uri, or use --upstream"


class SourceUpTo(Source):
    """A source that ends at a moment: its watermarks are no higher."""

    upto: ResolvedTs

    def probe(self, progress: Progress, caps: Mapping[Partition, int] | None = None) -> Probe:
        """See `Source.probe`."""
        found = super().probe(progress, caps)
        check_beginnings({p: at.progress.start for p, at in found.partitions.items() if at.progress.is_unread}, 0, dict)
        if found.resolved.ts is None or found.resolved.ts <= self.upto:
            return found
        return replace(found, resolved=found.resolved._replace(ts=self.upto))


@contextmanager
def replayed(config: Config, known: Progress, spark: SparkContext | None = None) -> Iterator[Side]:
    """A side that holds what the topics do up to the checkpoint of `known`. Raises ReconcilerError.

    A Spark context that is given is shared and not stopped.
    """
    if known.began_ts:
        hint = "what it reads lacks the rows from before: set source.upstream.uri, or use --against"
        fact = f"the changefeed began at {known.began_ts} (start-ts, dump, other source), not with an empty target"
        raise ConfigError(fact, hint=hint)
    with tempfile.TemporaryDirectory(prefix="ticdc-reconciler-verify-") as directory:
        own = _config(config, Path(directory))
        context = spark or start_spark(f"{config.changefeed} verify", config.spark)
        try:
            with closing(_source_up_to(own, known)) as source:
                replay(own, known, source, SparkJobs(context, readers_of(own)))
        finally:
            if spark is None:
                stop_spark(context)
        side = Side("replay", lambda: target_of(own), called="the replay of the topics")
        side.open(1)
        try:
            side.targets[0].stored(config.changefeed)  # it tells which table of upstream is which one there
            yield side
        finally:
            side.close()


def _config(config: Config, directory: Path) -> Config:
    """The changefeed's config, with another target and nothing that others see."""
    uri = f"sqlite:///{directory}"
    told = {"uri": uri, "consistency": "snapshot", "volatile-defaults": "commit-time"}
    target = TargetSection.model_validate(told)
    quarantine = config.quarantine.model_copy(update={"topic": ""})
    return config.model_copy(update={"target": target, "redis": RedisSection(uri=""), "quarantine": quarantine})


def replay(config: Config, known: Progress, source: ChangeSource, jobs: Jobs) -> None:
    """Apply to the config's target what the source holds up to the checkpoint of `known`. Raises ReconcilerError."""
    with closing(target_of(config)) as target:
        target.connect()
        filters, routes = read_filter(config.filter), read_routes(config.sink)
        first = Progress.first(BEGINNING, filters.digest, "", routes.digest)
        target.claim(config.changefeed, replace(first, topics=_retired(known)))
        session = Session(config, source, target, jobs)
        caps = source.ends()  # a topic may grow faster than it is read
        while Round(session).run(caps, to_end=True):
            pass
        reached = session.progress.checkpoint_ts
    if isinstance(source, Source):
        _check_same(source, known)
    if reached != known.checkpoint_ts:
        raise InputError(
            f"the topics reach {reached} ({utc_text(reached)} UTC), the target's checkpoint is {known.checkpoint_ts}",
            hint="they were created again, or another topic is missing: compare with the upstream",
        )


def _source_up_to(config: Config, known: Progress) -> ChangeSource:
    """What holds the rows up to the checkpoint. Raises InputError unless all is there that ever was."""
    if config.source.storage:
        files = FileSource(config, storage_of(config))
        files.upto = ResolvedTs(known.checkpoint_ts)
        return files
    source = SourceUpTo.of(config)
    source.upto = ResolvedTs(known.checkpoint_ts)
    try:
        _check_whole(source, known)
    except BaseException:
        source.close()
        raise
    return source


def _retired(known: Progress) -> dict[str, TopicProgress]:
    """The topics that hold nothing back, for an operator said so."""
    return {
        name: TopicProgress(topic.id, retired=True, retired_to=topic.retired_to)
        for name, topic in known.topics.items()
        if topic.retired
    }


def _check_whole(source: Source, known: Progress) -> None:
    """Raise InputError unless the topics still hold all that they ever held: what is gone is not compared."""
    _check_same(source, known)
    begins = source.control.begins([p for topic in source.listed() for p in topic.partitions])
    for partition, begin in sorted(begins.items()):
        if begin > 0:
            raise InputError(
                "retention deleted the beginning of a topic: what it held can't be replayed",
                where=f"{partition} offset={begin}",
                hint=_HINT,
            )


def _check_same(source: Source, known: Progress) -> None:
    """Raise InputError unless the topics, and the logs up to where they were read, are those of the progress."""
    there = {topic.name: topic.id for topic in source.listed()}
    for name, topic in sorted(known.topics.items()):
        if there.get(name) != topic.id:
            raise InputError(
                "a topic of this changefeed is gone, or was created again: what it held can't be replayed",
                where=f"topic={name}",
                hint=_HINT,
            )
    reached = {p: End(at.read_to, at.epoch) for p, at in known.partitions.items()}
    check_kept(source.control, reached, source.control.stable_ends(reached))
