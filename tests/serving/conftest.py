"""Applications in this process, without a changefeed that runs."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from consumer.serve.access import Access
from consumer.serve.app import application
from consumer.serve.fleet import Fleet
from consumer.serve.page import page_router
from consumer.serve.settings import Api
from tests.serving.lab import TOKEN


class Client:
    """Asks an application in this process."""

    def __init__(self, app: ASGIApp, headers: dict[str, str]) -> None:
        self._app, self._headers = app, headers

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1:8300", headers=self._headers
            ) as client:
                return await client.request(method, path, **more)

        return asyncio.run(ask())


Ask = Callable[..., Client]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the changefeeds' files are."""
    place = tmp_path / "changefeeds"
    place.mkdir()
    return place


@pytest.fixture
def fleet(folder: Path, tmp_path: Path) -> Iterator[Fleet]:
    """Nothing in it runs: it is not opened. The API may make targets where tests do."""
    found = Fleet(folder, tmp_path)
    found.settings = found.settings.model_copy(update={"api": Api(directories=[tempfile.gettempdir(), "/tmp"])})
    yield found
    for feed in found.all():
        feed.forget()


@pytest.fixture
def asking(fleet: Fleet) -> Ask:
    """Clients of the application, with another access if one is given."""

    def make(loopback: bool = True, token: str = TOKEN, names: tuple[str, ...] = (), **headers: str) -> Client:
        return Client(application(fleet, Access(token, loopback, frozenset(names)), page_router()), headers)

    return make
