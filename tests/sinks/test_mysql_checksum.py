"""The digest by which the two sides of an EXCHANGE PARTITION are told apart."""

from typing import Any, cast

import pytest

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.mysql.connection import MysqlConnection
from sinks.mysql.ddl.recovery import checksum


class Answering:
    """A server that says of a table's rows how many there are, how many have a digest, and the sum."""

    def __init__(self, *answer: int) -> None:
        self.answer = answer

    def query(self, sql: str, parameters: object = None) -> list[tuple[Any, ...]]:
        del sql
        return [self.answer] if parameters is None else [("id",), ("v",)]


def test_rows_without_a_digest_are_not_left_out_of_the_sum() -> None:
    table = TableName("d", "t")
    assert checksum(cast("MysqlConnection", Answering(2, 2, 7)), table) == "2/7"
    with pytest.raises(TargetError, match=r"1 rows of d\.t are too long .* digest"):
        checksum(cast("MysqlConnection", Answering(2, 1, 7)), table)
