"""The status page: static files, served as they are, under a policy that lets nothing else in.

The page is open to everybody who reaches the server, and shows nothing by itself: what it shows comes from the API,
which asks for the token.
"""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Final

from fastapi import APIRouter, Response

from consumer.runtime.pages import page_names, page_text

_SOURCES: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",  # no text can become markup, whatever a script does
    "trusted-types 'none'",
)
POLICY: Final = "; ".join(_SOURCES)
"""The Content-Security-Policy."""
_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_TEXT: Final = "text/plain; charset=utf-8"
"""Of the documentation: Markdown, as `reconciler help` prints it."""
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def page_files() -> dict[str, tuple[bytes, str]]:
    """Each of the page's files by name: its bytes and its media type."""
    found = (file for file in (files(__package__) / "static").iterdir() if file.is_file())
    return {file.name: (file.read_bytes(), _KINDS[f".{file.name.rpartition('.')[2]}"]) for file in found}


def page_router() -> APIRouter:
    """Routes of the page: `/`, its files below `/page/`, the documentation below `/page/help/`.

    They are open, so they must show nothing of what runs here.
    """
    router = APIRouter(include_in_schema=False)
    for name, (body, kind) in page_files().items():
        path = "/" if name == "index.html" else f"/page/{name}"
        router.add_api_route(path, _sender(body, kind), methods=["GET", "HEAD"])
    for name in page_names():
        body = page_text(name).encode()
        router.add_api_route(f"/page/help/{name}", _sender(body, _TEXT), methods=["GET", "HEAD"])
    return router


def _sender(body: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def send() -> Response:
        return Response(body, media_type=kind, headers={**_HEADERS, "Cache-Control": "no-cache"})

    return send
