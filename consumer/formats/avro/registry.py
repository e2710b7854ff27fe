"""Schemas of a Confluent schema registry, fetched by their number and kept: a number always means the same schema.

A registry that lost its schemas gives their numbers to others. TiCDC registers a topic's schemas as `TOPIC-key` and
`TOPIC-value` (pingcap/ticdc, `pkg/sink/codec/avro/helper.go`), so a schema that is another topic's alone is refused.
`GET /schemas/ids/NUMBER` and its `/versions` are used (Confluent documentation, "Schema Registry API Reference").
Tasks and the driver ask for themselves, once for each schema and process. Redirects are not followed, a login is sent
to the configured address alone, an answer is bounded in bytes and seconds.
"""

import base64
import urllib.request
from collections import OrderedDict
from dataclasses import dataclass, field
from http.client import HTTPException
from ssl import SSLContext, SSLError
from threading import Lock
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit

import msgspec
import structlog
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from consumer.codec.canal_json import UNREADABLE
from consumer.codec.foreign import FOREIGN_AVRO
from consumer.formats.avro.schema import AvroSchema, ForeignSchemaError, read_avro_schema
from consumer.kafka.oauth import Lines, NoRedirects
from consumer.kafka.tls import authorities
from consumer.kafka.topic_names import matcher
from ordering.errors import (
    AnotherProtocolError,
    BodyMissingError,
    ConfigError,
    InputError,
    SourceError,
    SourceUnreachableError,
)

_TIMEOUT_S, _WHOLE_S = 10, 20
"""Of a connection and of each silence; of the whole answer."""
_LONGEST = 4 << 20
"""Bytes of an answer: 4,096 columns with an ENUM among them stay below."""
_ATTEMPTS, _FIRST_S, _PAUSE_S = 3, 0.2, 2.0
_MOST_SCHEMAS, _MOST_BYTES = 10_000, 64 << 20
"""Kept by a process: schemas, and bytes of their texts."""
_SHOWN = 200
_TOO_MANY_REQUESTS, _UNKNOWN = 429, 404
_HINT = "source.schema-registry has to be the registry that the changefeed's sink names (schema-registry)"
_TAKEN = (
    "the registry has lost its schemas and given their numbers to others, so rows would be taken for another table's:"
    " restore its topic (_schemas), or begin with new topics and a new target"
)

log = structlog.get_logger()


class _Answer(msgspec.Struct):
    schema: str
    type: str = msgspec.field(default="AVRO", name="schemaType")
    references: list[msgspec.Raw] = []


class _Version(msgspec.Struct):
    subject: str


_decode = msgspec.json.Decoder(_Answer).decode
_decode_subjects = msgspec.json.Decoder(list[_Version]).decode


@dataclass(frozen=True, slots=True)
class SchemaRegistry:
    """Where the registry is. Travels to tasks. `authorities`: a file or directory of trusted ones; "": the system's."""

    url: str = field(repr=False, default="")
    authorities: str = ""
    topics: tuple[str, ...] = ()
    """As `source.topics`; without any, nothing is known of whose a schema is."""

    @property
    def place(self) -> str:
        """What is asked, without a login."""
        parts = urlsplit(self.url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{parts.scheme}://{host}:{parts.port or ''}".rstrip(":") + parts.path.rstrip("/")

    def schema(self, number: int) -> AvroSchema:
        """A schema by its number. Raises InputError, SourceError and SourceUnreachableError, none with a position."""
        found = _KEPT.get((self, number))
        if found is None:
            attempts = Retrying(
                retry=retry_if_exception_type((SourceUnreachableError, BodyMissingError)),
                stop=stop_after_attempt(_ATTEMPTS),
                wait=wait_exponential_jitter(multiplier=_FIRST_S, max=_PAUSE_S, jitter=_FIRST_S),
                reraise=True,
            )
            found, size = self._read(number, attempts(self._asked, f"/schemas/ids/{number}"))
            _KEPT.put((self, number), found, size)
        return found

    def schema_of(self, topic: str, number: int) -> AvroSchema:
        """The schema that a topic's message names. Raises as `schema`; InputError too where it is another topic's."""
        found = self.schema(number)
        subjects = self._subjects(number) if self.topics else frozenset()
        others = {subject.rpartition("-")[0] for subject in subjects}
        if topic not in others and (taken := sorted(filter(matcher(self.topics), others))):
            fact = f"schema {number} is another topic's ({taken[0]}), by the schema registry"
            raise InputError(fact, where=f"source.schema-registry = {self.place}", hint=_TAKEN)
        return found

    def _subjects(self, number: int) -> frozenset[str]:
        """Under which names a schema is registered; none where the registry does not tell."""
        known = _SUBJECTS.get((self, number))
        if known is None:
            try:
                told = _decode_subjects(self._asked(f"/schemas/ids/{number}/versions?deleted=true"))
            except (*UNREADABLE, SourceError, InputError) as error:
                log.warning("the schema registry does not tell whose a schema is", number=number, error=str(error))
                return frozenset()
            if len(_SUBJECTS) >= _MOST_SCHEMAS:
                _SUBJECTS.clear()
            known = _SUBJECTS[self, number] = frozenset(one.subject for one in told)
        return known

    def check(self) -> str:
        """What `reconciler check` says of it. Raises SourceError and SourceUnreachableError."""
        self._asked("/subjects")
        return f"{self.place} answers"

    def _asked(self, path: str) -> bytes:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json", **self._login()}
        request = urllib.request.Request(self.place + path, headers=headers)  # noqa: S310 checked with the config
        try:
            lines = Lines(self._tls())
            opener = urllib.request.build_opener(NoRedirects(), urllib.request.ProxyHandler({}), lines)
            with lines.within(_WHOLE_S), opener.open(request, timeout=_TIMEOUT_S) as answer:
                body: bytes = answer.read(_LONGEST + 1)
        except HTTPError as error:
            raise self._refused(error, path) from None
        except (OSError, HTTPException, ValueError) as error:
            raise self._silent(error) from None
        if len(body) > _LONGEST:
            raise self._odd(f"its answer is longer than {_LONGEST} bytes")
        return body

    def _login(self) -> dict[str, str]:
        parts = urlsplit(self.url)
        if parts.username is None:
            return {}
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}

    def _tls(self) -> SSLContext | None:
        if not self.url.startswith("https:"):
            return None
        try:
            return authorities({"https.ca.location": self.authorities} if self.authorities else {}, "https")
        except ConfigError as error:
            fact = f"source.schema-registry-ca can't be used: {error.__cause__}"
            raise ConfigError(
                fact, where=self.authorities, hint="a PEM file, or a directory of such, readable for us"
            ) from None

    def _refused(self, error: HTTPError, path: str) -> SourceError:
        where, code = f"source.schema-registry = {self.place}", error.code
        error.close()
        if code == _UNKNOWN and path.startswith("/schemas"):
            fact = f"the schema registry has no schema {path.rpartition('/')[2]}"
            hint = f"{_HINT}, and must not have lost its schemas: compacted or deleted, they can't be made again"
            return BodyMissingError(fact, where=where, hint=hint)
        if code >= 500 or code == _TOO_MANY_REQUESTS:  # noqa: PLR2004
            return SourceUnreachableError(f"the schema registry answers {code}", where=where)
        if 300 <= code < 400:  # noqa: PLR2004
            fact = f"the schema registry answers {code}: it leads elsewhere, and redirects are not followed"
            return SourceError(fact, where=where, hint="name the registry itself")
        return SourceError(f"the schema registry answers {code}", where=where, hint=f"{_HINT}, with its login")

    def _silent(self, error: Exception) -> SourceError:
        cause = error.reason if isinstance(error, URLError) else error
        where = f"source.schema-registry = {self.place}"
        if isinstance(cause, SSLError):
            hint = "source.schema-registry-ca names the authorities that signed its certificate"
            return SourceError(
                f"the schema registry has no certificate that is trusted: {cause}", where=where, hint=hint
            )
        return SourceUnreachableError(f"the schema registry does not answer: {cause}", where=where)

    def _read(self, number: int, body: bytes) -> tuple[AvroSchema, int]:
        try:
            answer = _decode(body)
        except UNREADABLE as error:
            raise self._odd(f"its answer about schema {number} is none: {str(error)[:_SHOWN]}") from None
        if answer.type != "AVRO" or answer.references:
            raise self._odd(f"schema {number} is of type {answer.type[:_SHOWN]!r}, or refers to others")
        try:
            return read_avro_schema(answer.schema), len(body)
        except ForeignSchemaError as error:
            fact, hint = f"schema {number} can't be used: {error}", FOREIGN_AVRO
            raise AnotherProtocolError(fact, where=f"source.schema-registry = {self.place}", hint=hint) from None
        except (*UNREADABLE, ValueError) as error:
            raise self._odd(f"schema {number} can't be used: {str(error)[:_SHOWN]}") from None

    def _odd(self, fact: str) -> InputError:
        return InputError(f"the schema registry: {fact}", where=f"source.schema-registry = {self.place}", hint=_HINT)


class _Kept:
    """The schemas that this process has fetched, the newest of them. Any thread may ask."""

    def __init__(self) -> None:
        self._lock, self._size = Lock(), 0
        self._found: OrderedDict[tuple[SchemaRegistry, int], tuple[AvroSchema, int]] = OrderedDict()

    def get(self, name: tuple[SchemaRegistry, int]) -> AvroSchema | None:
        found = self._found.get(name)
        return None if found is None else found[0]

    def put(self, name: tuple[SchemaRegistry, int], schema: AvroSchema, size: int) -> None:
        with self._lock:
            self._size -= self._found.pop(name, (schema, 0))[1]
            self._found[name] = schema, size
            self._size += size
            while self._size > _MOST_BYTES or len(self._found) > _MOST_SCHEMAS:
                self._size -= self._found.popitem(last=False)[1][1]


_KEPT = _Kept()
_SUBJECTS: dict[tuple[SchemaRegistry, int], frozenset[str]] = {}
"""Those that this process has asked for."""
