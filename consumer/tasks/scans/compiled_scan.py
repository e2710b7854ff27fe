"""A scan and a reduction that leave what is usual to the compiled core.

The core takes a run of messages up to the first one that is not usual; that one is left to `Scan`, which stays what
tells what is right: reports, rows and errors of both are the same.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from consumer.codec import canal_json
from consumer.codec.canal_json import envelope
from consumer.codec.joined_run import JoinedRun
from consumer.formats.message_format import Untaken
from consumer.native import (
    AT_ONCE,
    GONE_KNOWN,
    LEFT_OUT,
    MOST_APART,
    MOST_KEYS,
    USUAL,
    WHOLE_KNOWN,
    Core,
    CoreCrash,
    CoreSource,
    Head,
    Reading,
    Rows,
    Taken,
    crash_error,
    joined_parts,
)
from consumer.native.kafka_messages import CoreRun
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.reduction import Reduction
from consumer.tasks.scans.scan import Scan
from consumer.tasks.shuffle_blocks import encode_block
from ordering.errors import InputError
from ordering.events import Position
from ordering.rows.identity import row_key_prefix
from ordering.window import Range

_LAST_OFFSET = 2**63 - 1
_REFUSED = (InputError, Untaken)
"""What a message raises that its format can't bring into our form."""
_NEED_ESCAPES = {*'"\\', *map(chr, range(0x20))}


class CompiledReduction(Reduction):
    """The survivors of a task, of net effects, in the core."""

    def __init__(self, spec: ReadSpec, core: Core, task: int = 0) -> None:
        super().__init__(spec, task)
        self.core, self.rows = core, Rows(core)
        self.add = self.rows.add
        self.add_all = self._add_all

    def _add_all(self, keys: list[bytes], orders: list[int], images: list[bytes], backs: list[int]) -> None:
        for half in zip(keys, orders, images, backs, strict=True):
            self.rows.add(*half)

    def held(self) -> tuple[int, int]:
        """See `Reduction.held`."""
        return len(self.rows), self.rows.bytes_held

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """See `Reduction.blocks`."""
        begin = encode_block(self.task, self.spelled_names(), [])[:-1]  # without the byte of an empty list
        for bucket, halves in self.rows.blocks(self.spec.buckets, self.spec.run_digits):
            self.sent[bucket + 1] += 1
            yield bucket + 1, begin + halves


class CompiledScan(Scan):
    """For windows of net effects, without event filters and with a key for each row."""

    def __init__(self, spec: ReadSpec, part: Range, reduction: CompiledReduction) -> None:
        super().__init__(spec, part, reduction)
        self._rows = reduction.rows
        self._reading = Reading(reduction.core, max(self._low, self._base), self._high)
        self._largest = min(spec.message_bytes, AT_ONCE)

    def take(self, messages: Iterable[Any], *, unpacked: bool = False) -> bool:
        """See `Scan.take`. Raises CoreError with the position where the core crashes."""
        if isinstance(messages, CoreRun | JoinedRun):
            return self._take(messages, messages)
        some = messages if isinstance(messages, list) else list(messages)
        if unpacked or not some:
            return super().take(some, unpacked=unpacked)
        for part, source in joined_parts(some, _REFUSED):
            if not (super().take(part) if source is None else self._take(part, source)):
                return False
        return True

    def _take(self, some: Sequence[Any], source: CoreSource) -> bool:
        at, apart = 0, 1
        while at < len(some):
            new = self._count_from, min(self._count_to, _LAST_OFFSET)
            try:
                found = self._reading.take(self._rows, source, at, self._largest, new)
            except CoreCrash as crash:
                where = Position(*self.report.range.partition, some[crash.at].offset())
                raise crash_error("message", str(where)) from crash
            if found.messages:
                self._took(found, some[at : at + found.messages])
            at += found.messages
            if found.status == USUAL:
                continue
            apart = 1 if found.messages >= apart else apart
            first = some[at]
            if not super().take(some[at : at + apart]):
                return False
            learned = found.head is not None and self._learn(found.head, first.value())
            at, apart = at + apart, 1 if learned else min(2 * apart, MOST_APART)
        return True

    def _took(self, found: Taken, some: Sequence[Any]) -> None:
        """Add what the core took to the report."""
        report = self.report
        report.read += self.messages_in(some)
        report.stop = some[-1].offset() + 1
        report.messages += found.messages
        report.events += found.events
        report.size += found.size
        report.deletes += found.deletes
        self._fingerprints.frombytes(found.prints)
        self._contents.frombytes(found.contents)
        self._commits.frombytes(found.commits)
        self._more.frombytes(found.left)

    def _learn(self, head: Head, value: bytes) -> bool:
        """Let the core take this table's further messages, as far as `Scan` has looked at a first one; if it can."""
        try:
            message = envelope(value)
        except canal_json.UNREADABLE:
            return False
        keys = self._keys.get((message.database, message.table, message.primary_key))
        if keys is None:
            accepts = self.spec.accepts(message.database, message.table)
            return not accepts and self._reading.learn(head, b"", (), LEFT_OUT)
        if keys not in self._met or len(keys.names) > MOST_KEYS or not _NEED_ESCAPES.isdisjoint("".join(keys.names)):
            return False
        flags = WHOLE_KNOWN * ((keys.name, False) in self._typed) | GONE_KNOWN * ((keys.name, True) in self._typed)
        prefix = row_key_prefix(keys.name, len(keys.names))
        return self._reading.learn(head, prefix, [name.encode() for name in keys.names], flags)
