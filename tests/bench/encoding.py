"""`python -m tests.bench.encoding`: CPU of netting, ordering and encoding a net row, with the core and without.

Rows of update-heavy's table, from a bucket's blocks to what LOAD DATA and COPY read; the best of some turns. Both ways
have to give the same.
"""

import json
import time

from consumer.large_messages.claim_check import Claims
from consumer.large_messages.fetch import Bodies
from consumer.tasks.order import OrderTask
from consumer.tasks.shuffle_blocks import decode_block, encode_block
from ordering.events import TableName
from ordering.rows.identity import row_key
from ordering.rows.net_effect import KeyChange
from sinks.mysql.encoder import MysqlEncoder
from sinks.postgres.encoder import PostgresEncoder
from sinks.rows.chunk import Chunk, Encoder
from sinks.rows.schema import Column, Shape, TableSchema
from sinks.rows.values import ValueRules

ROWS, BLOCKS, TURNS = 50_000, 4, 5
TABLE = TableName("bench", "sbtest1")
TYPES: dict[str, tuple[Encoder, tuple[str, ...]]] = {
    "mysql": (MysqlEncoder(ValueRules()), ("bigint(20)", "int(11)", "char(120)", "char(60)")),
    "postgresql": (PostgresEncoder(ValueRules()), ("bigint", "bigint", "text", "text")),
}


def halves() -> list[KeyChange]:
    """A tenth of the rows are gone."""
    found: list[KeyChange] = []
    for number in range(ROWS):
        words = "-".join(f"{number * at * 7919 % 10**11:011d}" for at in range(1, 11))
        image = f'{{"id":"{number}","k":"{number * 31 % 1_000_003}","c":"{words}","pad":"{words[:59]}"}}'.encode()
        key, written = row_key(TABLE, [str(number)]), number % 10 > 0
        found.append((key, (1_000 + number) << 1 | written, image if written else b"", int(written)))
    return found


def encoded(
    encoder: Encoder, kinds: tuple[str, ...], blocks: list[bytes], *, native: bool
) -> tuple[list[Chunk], float]:
    """The chunks, and the CPU seconds that they took."""
    shapes = (Shape.INTEGER, Shape.INTEGER, Shape.TEXT, Shape.TEXT)
    columns = [
        Column(name, kind, shape, nullable=False)
        for name, kind, shape in zip(("id", "k", "c", "pad"), kinds, shapes, strict=True)
    ]
    schema = TableSchema(TABLE, tuple(columns), ("id",), (("id",),))
    bodies = Bodies(Claims((), {}, {}, 1 << 20), None)
    task = OrderTask({TABLE: schema}, encoder, bodies, whole_transactions=False, native=native)
    begin = time.process_time()
    rows = task.netted([decode_block(block) for block in blocks])
    chunks = list(task.chunks_of(rows, {f"{TABLE.database}\0{TABLE.table}": ("id",)}))
    return chunks, time.process_time() - begin


def main() -> None:
    """Measure, and print a line of JSON for each dialect."""
    all_halves = halves()
    blocks = [encode_block(n, {"bench\0sbtest1": ["id"]}, all_halves[n::BLOCKS]) for n in range(BLOCKS)]
    for name, (encoder, kinds) in TYPES.items():
        best = {True: float("inf"), False: float("inf")}
        for _ in range(TURNS):
            chunks, seconds = encoded(encoder, kinds, blocks, native=False)
            compiled, fewer = encoded(encoder, kinds, blocks, native=True)
            if compiled != chunks:
                raise SystemExit(f"{name}: the core made other chunks")
            best = {True: min(best[True], fewer), False: min(best[False], seconds)}
        python, core = (best[native] / ROWS * 1e6 for native in (False, True))
        print(json.dumps({"target": name, "python_us": round(python, 2), "core_us": round(core, 2)}))


if __name__ == "__main__":
    main()
