"""An exported progress that goes on with another source: from topics to files, or from files to topics."""

from contextlib import closing
from dataclasses import replace
from uuid import uuid4

from consumer.config.model import Config
from consumer.source.file_source import FileSource
from consumer.source.port import ChangeSource, source_of
from consumer.source.probe import Source
from consumer.wiring import reading
from ordering.errors import BeginningLostError, ConfigError, InputError
from ordering.events import Partition
from ordering.progress import Progress
from ordering.rewind import reached
from ordering.sources.archive import begun_again, is_half_done, taken_up
from ordering.timestamps import utc_text


def as_read_here(config: Config, progress: Progress, cluster: str) -> Progress:
    """An exported progress as this config reads on from it: between topics and files it keeps the checkpoint alone.

    Raises ConfigError and SourceError: topics created again, topics that are gone, retention, and topics or files that
    begin too late are refused.
    """
    with closing(source_of(reading(config, progress))) as source:
        here = source.identity()
        if here == cluster:
            _look(config, source, progress)
            if isinstance(source, FileSource) and progress.checkpoint_ts:
                source.check_begun(progress.checkpoint_ts)
            return progress
        if not progress.checkpoint_ts or _is_store(here) == _is_store(cluster):
            raise ConfigError(
                f"the export is of Kafka cluster {cluster}, not of {here}",
                where=config.source.storage or config.source.bootstrap_servers,
                hint="offsets mean nothing in another cluster",
            )
        moved = replace(taken_up(progress, because="", ledger=uuid4().hex), topics={})
        if isinstance(source, FileSource):
            probe = source.probe(moved)
            source.check_holds(progress, reached(progress))
            return begun_again(moved, probe.ranges)
        _refuse_unfinished(progress, cluster)
        if isinstance(source, Source):
            lacking, topics = source.holding(moved.checkpoint_ts, {})
            moved = replace(moved, topics=topics)  # so one that is created again until the next run is not taken for it
            if lacking and config.source.unproven_beginning == "error":
                raise _lacking(lacking[0], moved.checkpoint_ts)
        _look(config, source, moved)
        return moved


def _refuse_unfinished(progress: Progress, files: str) -> None:
    fact = "a window was begun with rows of files" if progress.window is not None else ""
    if is_half_done(progress.executed, progress.checkpoint_ts):
        fact = "of the DDL at the checkpoint some parts were executed, and not all"
    if fact:
        hint = "finish it by `reconciler run --once` with the config that names the files, and export again"
        raise ConfigError(fact, where=files, hint=hint)


def _lacking(partition: Partition, ts: int) -> InputError:
    return InputError(
        f"the topics may lack what came after {ts} ({utc_text(ts)} UTC)",
        where=str(partition),
        hint="retention deleted it, the changefeed that writes them began later, or this topic was created again."
        " If they hold all that came after it, as where its start-ts is that, set"
        ' source.unproven-beginning = "accept" for this command',
    )


def _look(config: Config, source: ChangeSource, progress: Progress) -> None:
    try:
        source.probe(progress)
    except BeginningLostError:
        if not config.source.archive:  # else the next run reads on from that
            raise


def _is_store(identity: str) -> bool:
    return "://" in identity
