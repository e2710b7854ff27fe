"""A small server that stands for TiCDC's Open API v2: it answers about one changefeed, as a test says."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.http_answers import Answer, Asked, answering


@dataclass
class TicdcApi:
    """How it answers, and what it was asked: paths and logins."""

    url: str = ""
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)

    def at(self, checkpoint_ts: object, **changes: object) -> None:
        """Answer with this checkpoint from now on."""
        told = {"id": "orders", "keyspace": "default", "state": "normal", "checkpoint_ts": checkpoint_ts}
        self.body = json.dumps({**told, **changes}).encode()


@contextmanager
def ticdc_api() -> Iterator[TicdcApi]:
    """Serves until left."""
    api = TicdcApi()

    def answer(asked: Asked) -> Answer:
        api.asked.append(asked.path)
        api.logins.append(asked.login)
        return api.status, api.headers, api.body

    with answering(answer) as api.url:
        yield api
