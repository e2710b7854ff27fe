"""A load on a real TiDB (or MySQL, MariaDB): a small shop whose every transaction touches several tables.

Orders are placed, paid, sent under another number and forgotten; a column comes and goes. What is sold leaves the
stock, so `sum(stock.quantity) + sum(lines.quantity)` is `TOTAL` in every state: whoever sees another sum in a target
saw half a transaction.

    python -m consumer.demo.shop_load tidb://root@127.0.0.1:4000 --per-second 50
"""

import random
import time
from collections.abc import Callable
from decimal import Decimal

import click
import pymysql
from pymysql.cursors import Cursor

from sinks.uri import parse_target_uri

ARTICLES = 200
TOTAL = ARTICLES * 10_000
"""Pieces of all articles, in the stock and in orders."""
_MOST_ORDERS = 5_000
_TABLES = (
    "CREATE DATABASE IF NOT EXISTS shop",
    (
        "CREATE TABLE IF NOT EXISTS shop.stock (article INT PRIMARY KEY, sku VARCHAR(20) NOT NULL UNIQUE,"
        " quantity INT NOT NULL, price DECIMAL(8,2) NOT NULL)"
    ),
    (
        "CREATE TABLE IF NOT EXISTS shop.orders (id BIGINT PRIMARY KEY, customer VARCHAR(40) NOT NULL,"
        " state ENUM('new','paid','sent') NOT NULL, total DECIMAL(12,2) NOT NULL, placed DATETIME(3) NOT NULL)"
    ),
    (
        "CREATE TABLE IF NOT EXISTS shop.order_lines (order_id BIGINT NOT NULL, line INT NOT NULL, article INT"
        " NOT NULL, quantity INT NOT NULL, PRIMARY KEY (order_id, line))"
    ),
)


class Shop:
    """The workload over one connection: `prepare` once, then one transaction at a time."""

    def __init__(self, connection: pymysql.connections.Connection, seed: int = 0) -> None:
        self._connection = connection
        self._chance = random.Random(seed)  # noqa: S311 a load, not a secret
        self._steps: tuple[Callable[[Cursor], None], ...] = (*[self._place] * 4, self._pay, self._send, self._forget)

    def prepare(self) -> None:
        """Make database and tables where they are missing, and fill the stock."""
        with self._connection.cursor() as cursor:
            for statement in _TABLES:
                cursor.execute(statement)
            cursor.execute("SELECT COUNT(*) FROM shop.stock")
            if _first(cursor) == 0:
                rows = [(n, f"sku-{n:05}", TOTAL // ARTICLES, Decimal(n) / 4) for n in range(1, ARTICLES + 1)]
                cursor.executemany("INSERT INTO shop.stock VALUES (%s, %s, %s, %s)", rows)
        self._connection.commit()

    def transact(self) -> None:
        """Do one of the things that happen in a shop, in one transaction."""
        with self._connection.cursor() as cursor:
            self._chance.choice(self._steps)(cursor)
        self._connection.commit()

    def alter(self) -> None:
        """Add a column to the orders, or drop it again."""
        with self._connection.cursor() as cursor:
            present = cursor.execute("SHOW COLUMNS FROM shop.orders LIKE 'gift'")
            change = "DROP COLUMN gift" if present else "ADD COLUMN gift VARCHAR(20) NOT NULL DEFAULT 'none'"
            cursor.execute(f"ALTER TABLE shop.orders {change}")

    def _place(self, cursor: Cursor) -> None:
        cursor.execute("SELECT COUNT(*), COALESCE(MAX(id), 0) + 1 FROM shop.orders")
        found = cursor.fetchone() or (0, 1)
        if found[0] >= _MOST_ORDERS:
            self._forget(cursor)
            return
        order, articles = found[1], self._chance.sample(range(1, ARTICLES + 1), self._chance.randint(1, 5))
        lines = [(order, line, article, self._chance.randint(1, 3)) for line, article in enumerate(articles, 1)]
        cursor.execute(
            "INSERT INTO shop.orders (id, customer, state, total, placed) VALUES (%s, %s, 'new', 0, NOW(3))",
            (order, f"customer {self._chance.randrange(1000)}"),
        )
        cursor.executemany("INSERT INTO shop.order_lines VALUES (%s, %s, %s, %s)", lines)
        for _, _, article, quantity in sorted(lines, key=lambda line: line[2]):
            cursor.execute("UPDATE shop.stock SET quantity = quantity - %s WHERE article = %s", (quantity, article))
        cursor.execute(
            "UPDATE shop.orders SET total = (SELECT SUM(l.quantity * s.price) FROM shop.order_lines l"
            " JOIN shop.stock s ON s.article = l.article WHERE l.order_id = %s) WHERE id = %s",
            (order, order),
        )

    def _pay(self, cursor: Cursor) -> None:
        if (order := self._order(cursor, "new")) is not None:
            cursor.execute("UPDATE shop.orders SET state = 'paid' WHERE id = %s", (order,))

    def _send(self, cursor: Cursor) -> None:
        """An order goes under another number, with its lines: keys that change."""
        if (order := self._order(cursor, "paid")) is not None:
            cursor.execute("SELECT MAX(id) + 1 FROM shop.orders")
            number = _first(cursor)
            cursor.execute("UPDATE shop.orders SET id = %s, state = 'sent' WHERE id = %s", (number, order))
            cursor.execute("UPDATE shop.order_lines SET order_id = %s WHERE order_id = %s", (number, order))

    def _forget(self, cursor: Cursor) -> None:
        """What was ordered goes back into the stock."""
        if (order := self._order(cursor, "sent")) is not None:
            cursor.execute("SELECT article, quantity FROM shop.order_lines WHERE order_id = %s", (order,))
            for article, quantity in sorted(cursor.fetchall()):
                cursor.execute("UPDATE shop.stock SET quantity = quantity + %s WHERE article = %s", (quantity, article))
            cursor.execute("DELETE FROM shop.order_lines WHERE order_id = %s", (order,))
            cursor.execute("DELETE FROM shop.orders WHERE id = %s", (order,))

    def _order(self, cursor: Cursor, state: str) -> int | None:
        """The oldest order in a state."""
        cursor.execute("SELECT MIN(id) FROM shop.orders WHERE state = %s", (state,))
        return _first(cursor)


def _first(cursor: Cursor) -> int | None:
    row = cursor.fetchone()
    return None if row is None else row[0]


@click.command()
@click.argument("uri")
@click.option("--per-second", type=click.FloatRange(0.1, 10_000), default=50.0, show_default=True)
@click.option(
    "--ddl-seconds", type=click.FloatRange(1), default=60.0, show_default=True, help="From a DDL to the next."
)
@click.option("--seconds", type=click.FloatRange(0.1), help="How long; without it until stopped.")
@click.option("--seed", type=int, default=0, show_default=True)
def main(uri: str, per_second: float, ddl_seconds: float, seconds: float | None, seed: int) -> None:
    """Let a shop do its business in the database at URI: mysql://, mariadb:// or tidb://USER:PASSWORD@HOST:PORT."""
    place = parse_target_uri(uri)
    with pymysql.connect(host=place.host, port=place.port, user=place.user, password=place.password) as connection:
        shop = Shop(connection, seed)
        shop.prepare()
        begun = altered = time.monotonic()
        done = 0
        while seconds is None or time.monotonic() - begun < seconds:
            shop.transact()
            done += 1
            if time.monotonic() - altered >= ddl_seconds:
                shop.alter()
                altered = time.monotonic()
            time.sleep(max(0.0, begun + done / per_second - time.monotonic()))
    click.echo(f"{done} transactions")


if __name__ == "__main__":
    main()
