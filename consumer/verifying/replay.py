"""The topics as the truth: what they hold up to C is applied to an empty target, as a run would, and compared.

It shows what a target lost or got since, by whatever hand, not what a run always does wrong. The target made for it is
a directory of SQLite files, removed afterwards.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext

from consumer.config import Config, Redis, TargetSection
from consumer.filters.changefeed import read_filter
from consumer.job import SparkJobs
from consumer.kafka_settings import reader_settings
from consumer.pipeline import Pipeline
from consumer.source import Probe, Source
from consumer.spark import start_spark, stop_spark
from consumer.targets import target_of
from consumer.verifying.sides import Side
from ordering.errors import ConfigError, InputError
from ordering.events import Partition
from ordering.progress import Progress, TopicProgress
from ordering.timestamps import BEGINNING, ResolvedTs, utc_text


class SourceUpTo(Source):
    """A source that ends at a moment: its watermarks are no higher."""

    upto: ResolvedTs

    def probe(self, progress: Progress, caps: Mapping[Partition, int] | None = None) -> Probe:
        """See `Source.probe`."""
        found = super().probe(progress, caps)
        if found.resolved.ts is None or found.resolved.ts <= self.upto:
            return found
        return replace(found, resolved=found.resolved._replace(ts=self.upto))


@contextmanager
def replayed(config: Config, known: Progress, spark: SparkContext | None = None) -> Iterator[Side]:
    """A side that holds what the topics do up to the checkpoint of `known`. Raises ReconcilerError.

    A Spark context that is given is shared and not stopped.
    """
    if known.start_ts:
        hint = "rows of the dump are in no topic: set source.upstream.uri, or say --against"
        raise ConfigError(f"the changefeed began at start-ts {known.start_ts}, not with an empty target", hint=hint)
    with tempfile.TemporaryDirectory(prefix="ticdc-reconciler-verify-") as directory:
        own = _config(config, Path(directory))
        context = spark or start_spark(f"{config.changefeed} verify", config.spark)
        try:
            _replay(own, known, context)
        finally:
            if spark is None:
                stop_spark(context)
        side = Side("replay", lambda: target_of(own))
        side.open(1)
        try:
            yield side
        finally:
            side.close()


def _config(config: Config, directory: Path) -> Config:
    """The changefeed's config, with another target and nothing that others see."""
    uri = f"sqlite:///{directory}"
    told = {"uri": uri, "consistency": "snapshot", "volatile-defaults": "commit-time"}
    target = TargetSection.model_validate(told)
    quarantine = config.quarantine.model_copy(update={"topic": ""})
    return config.model_copy(update={"target": target, "redis": Redis(uri=""), "quarantine": quarantine})


def _replay(config: Config, known: Progress, spark: SparkContext) -> None:
    source = SourceUpTo.of(config)
    source.upto = ResolvedTs(known.checkpoint_ts)
    settings = reader_settings(config.source.bootstrap_servers, config.source.kafka)
    with closing(source), closing(target_of(config)) as target:
        _check_whole(source)
        target.connect()
        first = Progress.first(BEGINNING, read_filter(config.filter).digest, "")
        target.claim(config.changefeed, replace(first, topics=_retired(known)))
        pipeline = Pipeline(config, source, target, SparkJobs(spark, settings), lambda _: None)
        while pipeline.round(to_end=True):
            pass
        reached = pipeline.progress.checkpoint_ts
    if reached != known.checkpoint_ts:
        raise InputError(
            f"the topics reach {reached} ({utc_text(reached)} UTC), the target's checkpoint is {known.checkpoint_ts}",
            hint="they were made anew, or another topic is missing: compare with the upstream",
        )


def _retired(known: Progress) -> dict[str, TopicProgress]:
    """The topics that hold nothing back, for an operator said so."""
    return {
        name: TopicProgress(topic.id, retired=True, retired_to=topic.retired_to)
        for name, topic in known.topics.items()
        if topic.retired
    }


def _check_whole(source: Source) -> None:
    begins = source.control.begins([p for topic in source.listed() for p in topic.partitions])
    for partition, begin in sorted(begins.items()):
        if begin > 0:
            raise InputError(
                "retention deleted the beginning of a topic: what it held can't be replayed",
                where=f"{partition} offset={begin}",
                hint="compare with the upstream: set source.upstream.uri, or say --upstream",
            )
