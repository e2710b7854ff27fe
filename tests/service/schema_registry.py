"""A small schema registry that keeps Confluent's HTTP contract, as far as TiCDC and its readers use it.

`POST /subjects/SUBJECT/versions` registers, and gives a schema that is there already its number;
`GET /schemas/ids/NUMBER` gives it back (Confluent documentation, "Schema Registry API Reference"). A test may have it
answer otherwise.
"""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.http_answers import Answer, Asked, answering

_KIND = "application/vnd.schemaregistry.v1+json"


@dataclass
class FakeRegistry:
    """What it holds, how it answers, and what it was asked."""

    url: str = ""
    """With a path of its own: readers keep what they were told of a place, and a port may be another test's later."""
    schemas: dict[int, str] = field(default_factory=dict)
    subjects: dict[int, set[str]] = field(default_factory=dict)
    """Under which names each is registered."""
    login: str = ""
    """Those who ask have to log in so, if any: `USER:PASSWORD`."""
    instead: Callable[[str], Answer | None] = lambda _: None
    """Given a path, another answer."""
    asked: list[str] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def register(self, subject: str, schema: str) -> int:
        """The number of a schema, whoever names it."""
        number = self._numbers.setdefault(schema, len(self._numbers) + 1)
        self.schemas[number] = schema
        self.subjects.setdefault(number, set()).add(subject)
        return number

    def answer(self, path: str, login: str | None) -> Answer:
        """What a GET is answered."""
        path = path.removeprefix(urlsplit(self.url).path)
        self.asked.append(path)
        self.logins.append(login)
        if (other := self.instead(path)) is not None:
            return other
        if self.login and login != "Basic " + base64.b64encode(self.login.encode()).decode():
            return _json(401, {"error_code": 401, "message": "Unauthorized"})
        if path in ("/", "/subjects"):
            return _json(200, {} if path == "/" else [])
        number, _, rest = path.removeprefix("/schemas/ids/").partition("/")
        if rest == "versions?deleted=true" and number.isdecimal():
            return _json(200, [{"subject": name, "version": 1} for name in sorted(self.subjects.get(int(number), ()))])
        if rest or number == path or not number.isdecimal() or int(number) not in self.schemas:
            return _json(404, {"error_code": 40403, "message": f"Schema {number} not found"})
        return _json(200, {"schema": self.schemas[int(number)]})


def _json(status: int, value: Any) -> Answer:
    return status, {"Content-Type": _KIND}, json.dumps(value).encode()


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    """A registry of the test's own."""
    with schema_registry() as found:
        yield found


@contextmanager
def schema_registry() -> Iterator[FakeRegistry]:
    """Serves until left."""
    served = FakeRegistry()

    def answer(asked: Asked) -> Answer:
        if not asked.body:
            return served.answer(asked.path, asked.login)
        subject = asked.path.partition("/subjects/")[2].removesuffix("/versions")
        return _json(200, {"id": served.register(subject, json.loads(asked.body)["schema"])})

    with answering(answer) as url:
        served.url = f"{url}/{uuid4().hex}"
        yield served
