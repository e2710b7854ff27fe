"""What event filters compute is what a server computes from the same row."""

from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pymysql
import pytest

from tests.consumer.filters.conditions import COLUMNS, FALSE, MARIADB_DENIES, TRUE

pytestmark = pytest.mark.service
COLLATION = "utf8mb4_bin"


def bound(name: str, kind: str, text: str | None) -> Any:
    if text is not None and kind.startswith(("enum", "set", "bit")):
        return int(text)
    return text if text is None or name != "raw" else text.encode("latin-1")


def holds(cursor: Any, condition: str) -> bool:
    cursor.execute(f"SELECT ({condition}) FROM worker")
    ((found,),) = cursor.fetchall()
    return isinstance(found, int) and found == 1


@pytest.mark.parametrize("server", ["mariadb", "tidb"])
def test_conditions_are_those_of_a_server(request: pytest.FixtureRequest, server: str, database_prefix: str) -> None:
    uri = urlsplit(request.getfixturevalue(f"{server}_server").uri)
    types = {name: "set('x','y','z')" if kind == "set" else kind for name, (kind, _, _) in COLUMNS.items()}
    columns = ", ".join(f"`{name}` {kind}" for name, kind in types.items())
    values = [bound(name, kind, text) for name, (kind, text, _) in COLUMNS.items()]
    with closing(
        pymysql.connect(host=uri.hostname, port=uri.port or 0, user="root", password=uri.password or "")
    ) as connection:
        cursor = connection.cursor()
        cursor.execute(f"SET NAMES utf8mb4 COLLATE {COLLATION}")
        cursor.execute(f"CREATE DATABASE `{database_prefix}` CHARACTER SET utf8mb4 COLLATE {COLLATION}")
        try:
            cursor.execute(f"USE `{database_prefix}`")
            cursor.execute(f"CREATE TABLE worker ({columns})")
            cursor.execute(f"INSERT INTO worker VALUES ({', '.join(['%s'] * len(values))})", values)
            denied = MARIADB_DENIES if server == "mariadb" else []
            assert [text for text in TRUE if not holds(cursor, text)] == denied
            assert [text for text in FALSE if holds(cursor, text)] == []
        finally:
            cursor.execute(f"DROP DATABASE `{database_prefix}`")
