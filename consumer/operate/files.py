"""`reconciler check` and `reconciler tail` where the source is files: looks at some of them, and changes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from consumer.codec import canal_json
from consumer.config.model import Config
from consumer.operate.tail import Told, told_event
from consumer.source.file_source import SCHEMAS, FileSource
from consumer.storage.layout import RowFile
from consumer.wiring import readers_of, storage_of
from ordering.errors import ConfigError, InputError
from ordering.events import Partition, Position
from ordering.progress import Progress
from ordering.timestamps import utc_text
from sinks.wording import plural

_MOST_LOOKED_AT = 20
"""Series of which the last file is looked at."""


def looked_at_files(config: Config, progress: Progress) -> list[str]:
    """What the directory holds. Raises SourceError and InputError."""
    root = storage_of(config)
    probe = FileSource(config, root).probe(progress)
    if probe.resolved.ts is None:
        raise InputError(
            "there is no file `metadata`: TiCDC writes it a few seconds after the changefeed began",
            where=root.where("metadata"),
            hint="source.storage has to be the path of the changefeed's sink URI, without its parameters",
        )
    reader, looked_at = readers_of(config).get(), 0
    for partition, found in sorted(probe.partitions.items()):
        if partition != SCHEMAS and found.progress.start < found.end and looked_at < _MOST_LOOKED_AT:
            looked_at += 1
            for _, run in reader.read([(partition, found.end - 1, found.end)]):
                for message in run:
                    canal_json.decode(message.value(), Position(*partition, message.offset()))
    files = sum(found.end - found.progress.start for found in probe.partitions.values())
    count = len(probe.partitions) - 1
    there = f"{count} series of files, {plural(files, 'file')} to read, {plural(len(probe.ddls), 'DDL')} ahead"
    return [f"{there}; metadata is at {probe.resolved.ts} ({utc_text(probe.resolved.ts)} UTC)"]


@dataclass(frozen=True, slots=True)
class FileTail:
    """The latest rows of the files whose path begins so."""

    config: Config
    prefix: str
    count: int = 10

    def messages(self) -> Iterator[Told]:
        """Rows of the newest files, the oldest first. Raises SourceError, and ConfigError where there are no files."""
        root = storage_of(self.config)
        series = root.listing().series
        files = [file for name, some in series.items() if name.startswith(self.prefix) for file in some.values()]
        if not files:
            known = ", ".join(sorted(series)[:5])
            raise ConfigError(f"no files begin with {self.prefix!r}", where=root.uri, hint=f"there are: {known}")
        latest: list[Told] = []
        for file in sorted(files, key=lambda file: (file.modified_ms, file.series, file.number), reverse=True):
            latest = [*self._rows(file), *latest]
            if len(latest) >= self.count:
                break
        yield from latest[-self.count :] if self.count else ()

    def _rows(self, file: RowFile) -> list[Told]:
        partition = Partition(file.series, 0)
        position = Position(*partition, file.number)
        reader = readers_of(self.config).get()
        found: list[Told] = []
        try:
            for _, run in reader.read([(partition, file.number, file.number + 1)]):
                found += [told_event(message.value(), position, file.modified_ms) for message in run]
        except InputError as error:
            found.append(Told(position, file.modified_ms, "?", error=f"{error.fact} ({error.where})"))
        return found[-self.count :]
