"""Where batches begin, by their headers: of formats that don't tell, each record is one."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
from kafka import TopicPartition

from consumer.kafka import requests


@pytest.mark.parametrize(
    ("formats", "begins"),
    [
        ((2, 2, 2), [3, 6, 9]),
        ((1, 1, 1), [4, 5, 6, 7, 8, 9, 10]),
        ((2, 2, 1), [3, 6, 9, 10]),
        ((2, 0, 2), [3, 6, 7, 8, 9, 10]),
    ],
)
def test_where_batches_begin(monkeypatch: pytest.MonkeyPatch, formats: tuple[int, ...], begins: list[int]) -> None:
    async def three(_admin: object, _place: object, start: int, stop: int) -> AsyncIterator[SimpleNamespace]:
        assert (start, stop) == (4, 11)
        for number, magic in enumerate(formats):
            base = 3 + 3 * number
            yield SimpleNamespace(magic=magic, base_offset=base, next_offset=base + 3)

    monkeypatch.setattr(requests, "_batches", three)
    assert asyncio.run(requests.begins(None, TopicPartition("t", 0), 4, 11)) == begins
