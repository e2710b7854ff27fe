"""The load of the Compose stack, against a real TiDB: its sum holds, keys and columns change, it can begin again."""

from collections.abc import Iterator

import pymysql
import pytest
from click.testing import CliRunner

from consumer.demo.shop_load import TOTAL, Shop, main
from tests.embedded import TidbServer

pytestmark = pytest.mark.service
SUM = "SELECT (SELECT SUM(quantity) FROM shop.stock) + COALESCE((SELECT SUM(quantity) FROM shop.order_lines), 0)"


def one(connection: pymysql.connections.Connection, statement: str) -> int:
    connection.rollback()
    with connection.cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def server(tidb_server: TidbServer) -> Iterator[TidbServer]:
    """The server that all tests share, whose shop goes with the test."""
    yield tidb_server
    with pymysql.connect(host="127.0.0.1", port=tidb_server.port, user="root") as connection:
        connection.cursor().execute("DROP DATABASE IF EXISTS shop")


def test_a_shop_keeps_its_sum(server: TidbServer) -> None:
    with (
        pymysql.connect(host="127.0.0.1", port=server.port, user="root") as writes,
        pymysql.connect(host="127.0.0.1", port=server.port, user="root") as reads,
    ):
        shop = Shop(writes, seed=3)
        shop.prepare()
        for _ in range(60):
            shop.transact()
            assert one(reads, SUM) == TOTAL
        shop.alter()
        for _ in range(10):
            shop.transact()
        shop.alter()
        states = {"sent", "new"}
        assert one(reads, "SELECT COUNT(DISTINCT state) FROM shop.orders WHERE state IN ('new', 'sent')") == len(states)
        sold = one(reads, "SELECT COUNT(*) FROM shop.orders")
        lost = "SELECT COUNT(*) FROM shop.order_lines WHERE order_id NOT IN (SELECT id FROM shop.orders)"
        assert one(reads, lost) == 0
        done = CliRunner().invoke(main, [f"tidb://root@127.0.0.1:{server.port}", "--seconds", "1", "--seed", "9"])
        assert done.exit_code == 0, done.output
        assert one(reads, SUM) == TOTAL
        assert one(reads, "SELECT COUNT(*) FROM shop.orders") != sold
