"""Another user of the target's rows, over a connection of its own: locks them, and meets us in a deadlock."""

import threading
import time
from contextlib import closing

import psycopg

from tests.bench.measure import mysql_connection

_LOCKS_WITHIN_S = 180.0
_HEAVY = 500
"""Rows that it has changed: of two, MariaDB rolls back the one that has changed less."""


class Competitor:
    """Locks row MIDDLE of `d.t`; once somebody waits for it, asks for all the others, of which he holds some."""

    def __init__(self, uri: str, middle: int) -> None:
        self._uri, self._middle = uri, middle
        self._is_mysql = not uri.startswith("postgresql")
        self._ready, self._failure = threading.Event(), list[BaseException]()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Hold the row."""
        self._thread.start()
        self._ready.wait(_LOCKS_WITHIN_S)

    def join(self) -> None:
        """Wait for the end; raises what went wrong, above all if it was the one that was rolled back."""
        self._thread.join(_LOCKS_WITHIN_S)
        if self._failure:
            raise self._failure[0]

    def _run(self) -> None:
        try:
            with closing(self._connected()) as line, line.cursor() as cursor:
                if not self._is_mysql:
                    cursor.execute("SET deadlock_timeout = '60s'")  # the other one finds out, and is rolled back
                cursor.execute("BEGIN")
                cursor.execute(f"UPDATE d.other SET v = v + 1 WHERE id <= {_HEAVY:d}")
                cursor.execute(f"SELECT v FROM d.t WHERE id = {self._middle:d} FOR UPDATE")
                cursor.fetchall()
                self._ready.set()
                self._wait_for_the_other_one()
                cursor.execute(f"SELECT v FROM d.t WHERE id <> {self._middle:d} FOR UPDATE")
                cursor.fetchall()
                cursor.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 raised again in `join`
            self._failure.append(error)
            self._ready.set()

    def _connected(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 two drivers
        return mysql_connection(self._uri) if self._is_mysql else psycopg.connect(self._uri, autocommit=True)

    def _wait_for_the_other_one(self) -> None:
        look = "SELECT COUNT(*) FROM information_schema.INNODB_LOCK_WAITS"
        if not self._is_mysql:
            look = "SELECT COUNT(*) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0"
        limit = time.monotonic() + _LOCKS_WITHIN_S
        with closing(self._connected()) as line, line.cursor() as cursor:
            while True:
                cursor.execute(look)
                if cursor.fetchone()[0]:
                    return
                if time.monotonic() > limit:
                    raise TimeoutError("nobody waits for the row")
                time.sleep(0.2)  # InnoDB tells again only who has not asked for a tenth of a second
