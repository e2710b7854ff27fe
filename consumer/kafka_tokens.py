"""Tokens for SASL OAUTHBEARER on the control plane: the client credentials grant that librdkafka does by itself.

RFC 6749, section 4.4: `grant_type=client_credentials`, the client's id and secret as HTTP's basic login.
"""

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode, urlsplit

from kafka.errors import KafkaConnectionError, KafkaError, SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from consumer.kafka_tls import authorities

_TIMEOUT_S = 10
_LONGEST = 1 << 20
_USED_UP = 0.8
"""The part of its life after which a token is fetched anew; librdkafka's is the same."""
_REFUSALS = range(400, 500)


class TokenEndpoint(AbstractTokenProvider):  # type: ignore[misc]  # untyped
    """Gives kafka-python a token that is still good. Keeps the secret out of every message."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        super().__init__()
        self.url = str(settings["sasl.oauthbearer.token.endpoint.url"])
        names = (str(settings[f"sasl.oauthbearer.client.{name}"]) for name in ("id", "secret"))
        self._login = base64.b64encode(":".join(names).encode()).decode()
        self._scope = str(settings.get("sasl.oauthbearer.scope", ""))
        self._extensions = dict(_pairs(str(settings.get("sasl.oauthbearer.extensions", ""))))
        self._context = authorities(settings, "https") if self.url.startswith("https:") else None
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
                self._token, seconds = str(answer["access_token"]), float(answer.get("expires_in") or 0)
            except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
                raise self._as_error(error) from error
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
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=self._context) as answer:  # noqa: S310
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
            silent = isinstance(cause, OSError | HTTPException) and not isinstance(cause, ssl.SSLError)
        if silent:
            self.silence = f"the token endpoint {self.place} does not answer: {cause}"
            return KafkaConnectionError(self.silence)
        self.refusal = f"no token from {self.place}: {cause}"
        return SaslAuthenticationFailedError(self.refusal)


def _pairs(text: str) -> list[tuple[str, str]]:
    """`a=1,b=2` as pairs."""
    return [(name, value) for name, _, value in (pair.partition("=") for pair in text.split(",") if pair)]
