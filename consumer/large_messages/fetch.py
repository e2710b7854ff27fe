"""Makes rows whole whose image is not in their message, a few at a time: each may be large."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import msgspec

from consumer.codec.canal_json import Image, decode_image
from consumer.codec.row_images import TableKeys
from consumer.formats.message_format import MessageFormat
from consumer.large_messages.claim_check import Claims
from consumer.large_messages.reference import BodyReference, is_reference, read_reference
from ordering.errors import InputError
from ordering.events import TableName
from ordering.rows.identity import commit_ts_of
from ordering.rows.net_effect import KeyChange

if TYPE_CHECKING:  # it brings a driver, which tasks load only where rows are upstream
    from consumer.large_messages.handle_key_only import UpstreamRows, Wanted

_AT_ONCE = 8
"""Claim-check files read at once by a task: a store answers slowly and takes many questions."""


_encode = msgspec.json.Encoder().encode


class ImageSelection(Protocol):
    """Of one table: which columns are taken, and which masked."""

    def image(self, image: Image) -> Image:
        """A row with nothing else."""
        ...


class RowSelection(Protocol):
    """Of all tables."""

    def of(self, name: TableName) -> ImageSelection | None:
        """What a table's rows are left with; None: as they are."""
        ...


@dataclass(frozen=True, slots=True)
class Bodies:
    """Where rows are that are not in their message; travels to the tasks."""

    claims: Claims
    upstream: "UpstreamRows | None"
    columns: RowSelection | None = None
    """Which columns are taken of rows that are read upstream; a claim-check file is read by its format, which knows."""

    def reading(self, format_: MessageFormat) -> "Bodies":
        """The same places, of messages of this format."""
        return replace(self, claims=replace(self.claims, format=format_))

    def whole(self, table: TableName, key: Sequence[str], halves: Sequence[KeyChange]) -> Iterable[KeyChange]:
        """The halves with their images. Raises InputError, SourceError and BodyMissingError, also in the iteration."""
        return self._fetched(table, key, halves) if any(is_reference(half[2]) for half in halves) else halves

    def _fetched(self, table: TableName, key: Sequence[str], halves: Sequence[KeyChange]) -> Iterator[KeyChange]:
        yield from (half for half in halves if not is_reference(half[2]))
        wanted = [(half, read_reference(half[2])) for half in halves if is_reference(half[2])]
        claimed = [one for one in wanted if one[1].location]
        if claimed:
            yield from self._claimed(TableKeys(table, key), claimed)
        selected = [one for one in wanted if not one[1].location]
        if selected:
            yield from self._taken(table, self._upstream(selected[0][1]).images(table, key, selected))

    def _taken(self, table: TableName, halves: Iterator[KeyChange]) -> Iterator[KeyChange]:
        rules = self.columns.of(table) if self.columns else None
        if rules is None:
            yield from halves
            return
        for row, order, image, back in halves:
            yield row, order, _encode(rules.image(decode_image(image))), back

    def _claimed(self, keys: TableKeys, wanted: "list[Wanted]") -> Iterator[KeyChange]:
        def fetched(one: "Wanted") -> KeyChange:
            (key, order, _, back), reference = one
            return key, order, self.claims.image(reference, keys, key, commit_ts_of(order)), back

        with ThreadPoolExecutor(_AT_ONCE, "claims") as pool:
            for start in range(0, len(wanted), _AT_ONCE):
                yield from pool.map(fetched, wanted[start : start + _AT_ONCE])

    def _upstream(self, first: BodyReference) -> "UpstreamRows":
        if self.upstream is None:
            raise InputError(
                "message holds the handle key only, not the row",
                where=str(first.position),
                hint="set source.upstream.uri to the TiDB that the changefeed reads, or, in the changefeed,"
                " large-message-handle-option to claim-check or none",
            )
        return self.upstream
