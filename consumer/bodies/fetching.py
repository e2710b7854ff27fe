"""Makes rows whole whose image is not in their message, a few at a time: each may be large."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from consumer.bodies.claims import Claims
from consumer.bodies.reference import Reference, is_reference, read_reference
from consumer.images import TableKeys
from ordering.errors import InputError
from ordering.events import TableName
from ordering.identity import commit_ts_of
from ordering.neteffect import Half

if TYPE_CHECKING:  # it brings a driver, which tasks load only where rows are upstream
    from consumer.bodies.upstream import Upstream, Wanted

_AT_ONCE = 8
"""Claim-check files read at once by a task: a store answers slowly and takes many questions."""


@dataclass(frozen=True, slots=True)
class Bodies:
    """Where rows are that are not in their message; travels to the tasks."""

    claims: Claims
    upstream: "Upstream | None"

    def whole(self, table: TableName, key: Sequence[str], halves: Sequence[Half]) -> Iterable[Half]:
        """The halves with their images. Raises InputError, SourceError and BodyMissingError, also in the iteration."""
        return self._fetched(table, key, halves) if any(is_reference(half[2]) for half in halves) else halves

    def _fetched(self, table: TableName, key: Sequence[str], halves: Sequence[Half]) -> Iterator[Half]:
        yield from (half for half in halves if not is_reference(half[2]))
        wanted = [(half, read_reference(half[2])) for half in halves if is_reference(half[2])]
        claimed = [one for one in wanted if one[1].location]
        if claimed:
            yield from self._claimed(TableKeys(table, key), claimed)
        selected = [one for one in wanted if not one[1].location]
        if selected:
            yield from self._upstream(selected[0][1]).images(table, key, selected)

    def _claimed(self, keys: TableKeys, wanted: "list[Wanted]") -> Iterator[Half]:
        def fetched(one: "Wanted") -> Half:
            (key, order, _, back), reference = one
            return key, order, self.claims.image(reference, keys, key, commit_ts_of(order)), back

        with ThreadPoolExecutor(_AT_ONCE, "claims") as pool:
            for start in range(0, len(wanted), _AT_ONCE):
                yield from pool.map(fetched, wanted[start : start + _AT_ONCE])

    def _upstream(self, first: Reference) -> "Upstream":
        if self.upstream is None:
            raise InputError(
                "message holds the handle key only, not the row",
                where=str(first.position),
                hint="set source.upstream.uri to the TiDB that the changefeed reads, or, in the changefeed,"
                " large-message-handle-option to claim-check or none",
            )
        return self.upstream
