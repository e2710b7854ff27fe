"""Tokens for SASL OAUTHBEARER on the control plane: the client credentials grant that librdkafka does by itself.

RFC 6749, section 4.4: `grant_type=client_credentials`, the client's id and secret as HTTP's basic login.
"""

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from math import isfinite
from socket import SHUT_RDWR, socket
from ssl import SSLContext, SSLError
from threading import Event, Timer
from typing import Any
from urllib.parse import urlencode, urlsplit

from kafka.errors import KafkaConnectionError, KafkaError, SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from consumer.kafka.tls import authorities

_TIMEOUT_S = 10
"""Of a connection, and of each silence."""
_WHOLE_S = 30
"""Of the whole answer, for an endpoint that sends it byte by byte."""
_LONGEST = 1 << 20
_NO_TOKEN = (OSError, HTTPException, ValueError, LookupError, TypeError, OverflowError, RecursionError)
"""What an answer that holds no token may raise."""
_USED_UP = 0.8
"""The part of its life after which a token is fetched again; librdkafka's is the same."""
_REFUSALS = range(300, 500)
"""A redirect too: the login is for the endpoint that the config names."""


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib would send the login along to wherever an answer leads, also without TLS."""

    def redirect_request(self, *_: object) -> None:
        """Not follow it: it becomes an HTTPError."""


class Lines(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Connections that can be ended from another thread, also while headers are read."""

    def __init__(self, tls: SSLContext | None) -> None:
        super().__init__(context=tls)
        self._tls, self._open = tls, list[socket]()

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        """As urllib's own."""
        return self.do_open(self._kept(HTTPConnection), req)

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        """As urllib's own."""
        return self.do_open(self._kept(HTTPSConnection), req, context=self._tls)

    def _kept(self, kind: type[HTTPConnection]) -> type[HTTPConnection]:
        connections = self._open

        class Kept(kind):  # type: ignore[misc,valid-type]  # one of two
            def connect(self) -> None:
                super().connect()
                connections.append(self.sock)

        return Kept

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """End what is connected after so long. Raises TimeoutError for whatever comes of that."""
        over = Event()
        timer = Timer(seconds, self._end, [over])
        timer.start()
        try:
            yield
        except _NO_TOKEN as error:
            if over.is_set():
                message = f"the answer was not whole after {seconds:g} s"
                raise TimeoutError(message) from error
            raise
        finally:
            timer.cancel()
            self._open.clear()

    def _end(self, over: Event) -> None:
        over.set()
        for line in self._open:
            with suppress(OSError):  # it has ended by itself
                socket.shutdown(line, SHUT_RDWR)


class TokenEndpoint(AbstractTokenProvider):  # type: ignore[misc]  # untyped
    """Gives kafka-python a token that is still good. Keeps the secret out of every message."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        super().__init__()
        self.url = str(settings["sasl.oauthbearer.token.endpoint.url"])
        names = (str(settings[f"sasl.oauthbearer.client.{name}"]) for name in ("id", "secret"))
        self._login = base64.b64encode(":".join(names).encode()).decode()
        self._scope = str(settings.get("sasl.oauthbearer.scope", ""))
        self._extensions = dict(_pairs(str(settings.get("sasl.oauthbearer.extensions", ""))))
        tls = authorities(settings, "https") if self.url.startswith("https:") else None
        self._lines = Lines(tls)
        self._opener = urllib.request.build_opener(NoRedirects(), self._lines)
        self._token, self._good_until = "", 0.0
        self.silence = ""
        """Why the endpoint gave no answer the last time; "" if it did."""
        self.refusal = ""
        """Why it gave no token."""

    def token(self) -> str:
        """A token. Raises SaslAuthenticationFailedError if we get none, KafkaConnectionError without an answer."""
        if time.monotonic() >= self._good_until:
            self.silence = self.refusal = ""
            try:
                answer = self._asked()
                token, seconds = str(answer["access_token"]), _life_s(answer.get("expires_in") or 0)
            except _NO_TOKEN as error:
                raise self._as_error(error) from error
            self._token = token
            self._good_until = time.monotonic() + seconds * _USED_UP
        return self._token

    def extensions(self) -> dict[str, str]:
        """What is sent along with each token."""
        return self._extensions

    @property
    def place(self) -> str:
        """The endpoint without what its query may hold."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}:{parts.port or ''}{parts.path}"

    def _asked(self) -> dict[str, Any]:
        form = {"grant_type": "client_credentials"} | ({"scope": self._scope} if self._scope else {})
        request = urllib.request.Request(  # noqa: S310 the scheme is checked with the config
            self.url, urlencode(form).encode(), {"Authorization": f"Basic {self._login}", "Accept": "application/json"}
        )
        with self._lines.within(_WHOLE_S), self._opener.open(request, timeout=_TIMEOUT_S) as answer:
            found = json.loads(answer.read(_LONGEST))
        if not isinstance(found, dict):
            raise TypeError("the answer is no JSON object")
        return found

    def _as_error(self, error: Exception) -> KafkaError:
        """Silence may end; a refusal, a wrong certificate and an answer that is no token stay what they are."""
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(error, urllib.error.HTTPError):
            silent, cause = error.code not in _REFUSALS, f"{error.code} {error.reason}"
        else:
            silent = isinstance(cause, OSError | HTTPException) and not isinstance(cause, SSLError)
        if silent:
            self.silence = f"the token endpoint {self.place} does not answer: {cause}"
            return KafkaConnectionError(self.silence)
        self.refusal = f"no token from {self.place}: {cause}"
        return SaslAuthenticationFailedError(self.refusal)


def _life_s(told: Any) -> float:
    """For how long a token is good. Raises ValueError, TypeError and OverflowError for what is no such time."""
    seconds = float(told)
    if not isfinite(seconds) or seconds < 0:
        message = f"expires_in is {seconds}"
        raise ValueError(message)
    return seconds


def _pairs(text: str) -> list[tuple[str, str]]:
    """`a=1,b=2` as pairs."""
    return [(name, value) for name, _, value in (pair.partition("=") for pair in text.split(",") if pair)]
