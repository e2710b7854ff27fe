"""What Spark's tasks do for the library: rows of a window as plain values, for a DataFrame.

Runs where `consumer.tasks.order` runs, in place of its second stage.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from consumer.codec import canal_json
from consumer.large_messages.fetch import Bodies
from consumer.tasks.order import names_in
from consumer.tasks.shuffle_blocks import REPORTS, Record, taken
from ordering.events import RowOp, TableName
from ordering.rows.identity import commit_ts_of, key_values, table_of
from ordering.rows.manifest import Accounts
from ordering.rows.net_effect import KeyChange, net_effect
from ordering.rows.transactions import in_order

UPSERT, DELETE = "upsert", "delete"

ChangeRow = tuple[str, str, str, int, dict[str, str | None], dict[str, str | None] | None]
"""(database, table, `upsert` or `delete`, commitTs, handle key, the whole row or None); values as TiCDC spells them."""


@dataclass(frozen=True, slots=True)
class ChangesTask:
    """One bucket's changes: net effects, or all of them in commitTs order."""

    bodies: Bodies
    net: bool
    accounts: Accounts

    def __call__(self, bucket: int, records: Iterable[Record]) -> Iterator[ChangeRow]:
        """Run in a Spark task, for one bucket. Raises ReconcilerError, which fails the job."""
        if bucket == REPORTS:
            return
        blocks = taken(records).blocks(self.accounts)
        names = names_in(blocks)
        if self.net:
            halves: Iterable[KeyChange] = net_effect(half for block in blocks for half in block.halves())
        else:
            halves = in_order([block.halves() for block in blocks])
        yield from self._rows(halves, names)

    def _rows(self, halves: Iterable[KeyChange], names: Mapping[str, tuple[str, ...]]) -> Iterator[ChangeRow]:
        for half in halves:
            name = table_of(half[0])
            key = names[f"{name.database}\0{name.table}"]
            for whole in self.bodies.whole(name, key, [half]):
                yield _row(name, key, whole)


def _row(name: TableName, key: tuple[str, ...], half: KeyChange) -> ChangeRow:
    row_key, order, image, _ = half
    keys = dict(zip(key, key_values(row_key), strict=True))
    if not order & RowOp.WRITE:
        return name.database, name.table, DELETE, commit_ts_of(order), keys, None
    return name.database, name.table, UPSERT, commit_ts_of(order), keys, canal_json.decode_image(image)
