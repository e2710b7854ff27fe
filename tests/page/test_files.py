"""The page's files: small, nothing from elsewhere, nothing inline, a strict policy with each of them."""

import re

from fastapi import FastAPI
from fastapi.testclient import TestClient

from consumer.serve.page import POLICY, page_files, page_router
from tests.page.screenshots import PLACE, SHOTS

MOST_LINES = 400
FILES = {name: body.decode() for name, (body, _) in page_files().items()}


def test_files_are_small() -> None:
    assert {name: len(text.splitlines()) for name, text in FILES.items() if len(text.splitlines()) > MOST_LINES} == {}
    assert sum(len(text) for text in FILES.values()) < 200_000


def test_each_situation_has_its_picture_and_is_shown() -> None:
    names = {shot.name for shot in SHOTS}
    page = (PLACE.parent.parent / "development" / "page.md").read_text()
    assert {path.stem for path in PLACE.glob("*.png")} == names
    assert set(re.findall(r"situations/([\w-]+)\.png", page)) == names
    assert sum(path.stat().st_size for path in PLACE.glob("*.png")) < 5_000_000


def test_nothing_comes_from_elsewhere() -> None:
    allowed = {"http://www.w3.org/2000/svg"}  # a namespace, never fetched
    found = {
        url for text in FILES.values() for url in re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s\"']*", text)
    }
    assert found <= allowed
    named = re.findall(r'(?:src|href)="([^"#]+)"', FILES["index.html"])
    assert all(name.removeprefix("/page/") in FILES for name in named if not name.startswith("/page/help/"))
    imports = {name for text in FILES.values() for name in re.findall(r'from "\./([^"]+)"', text)}
    assert imports <= set(FILES)


def test_nothing_is_inline_and_no_text_becomes_markup() -> None:
    html = FILES["index.html"]
    assert re.findall(r"<script(?![^>]*src=)", html) + re.findall(r"<style|\sstyle=|\son\w+=", html) == []
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|setAttribute\(.on"
    assert [(name, found) for name, text in FILES.items() for found in re.findall(sinks, text)] == []


def test_each_file_comes_with_its_type_and_the_policy() -> None:
    app = FastAPI()
    app.include_router(page_router())
    client = TestClient(app)
    kinds = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    for name, text in FILES.items():
        answer = client.get("/" if name == "index.html" else f"/page/{name}")
        assert answer.text == text
        assert answer.headers["content-type"].startswith(kinds[name.rpartition(".")[2]])
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in POLICY
    assert client.get("/page/../__init__.py").status_code == 404
    assert app.openapi()["paths"] == {}


def test_the_documentation_is_served_as_text() -> None:
    """The links at the foot lead to the pages of this very version."""
    app = FastAPI()
    app.include_router(page_router())
    client = TestClient(app)
    linked = re.findall(r'href="(/page/help/[^"]+)"', FILES["index.html"])
    assert len(linked) >= 5
    for path in linked:
        answer = client.get(path)
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.text.startswith(("# ", "<!--"))
