"""A watermark from TiCDC's own API, for topics in which it is not, or no longer, sent (`source.watermark-from`).

TiCDC's `checkpoint_ts` is advanced only after Kafka acknowledged the rows at or below it (pingcap/ticdc,
`downstreamadapter/dispatcher/table_progress.go`, called by the producer's acknowledgements). So with `required-acks=-1`
every such row, and every DDL, lies below the ends of what was written, asked for *after* the checkpoint was read. That
holds for the topics that this changefeed writes to; where the API tells its sink, no others count.
"""

import base64
import json
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.client import HTTPException, IncompleteRead
from ssl import SSLError
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlencode, urlsplit

import structlog

from consumer.config.model import Config, LimitsSection
from consumer.kafka.oauth import Lines, NoRedirects
from consumer.source.clock import check_clock
from consumer.source.ticdc_sink import TicdcSink, read_sink
from ordering.errors import BeginningLostError, InputError, SourceError, SourceUnreachableError
from ordering.events import Partition
from ordering.progress import TopicProgress
from ordering.timestamps import ResolvedTs, utc_text

_TIMEOUT_S = 10
"""Of a connection, and of each silence."""
_WHOLE_S = 20
"""Of the whole answer."""
_LONGEST = 1 << 20
_KEPT = 8
"""Checkpoints of a partition that are kept until it was read so far."""
_LAST_TSO = 2**63 - 1
_OTHER_TOPICS = (
    "source.watermark-changefeed has to be the one that writes the topics; if its sink URI or dispatchers were changed,"
    " add the new topics to source.topics, then retire the old ones (`reconciler topic retire`)"
)
_OTHER_CLUSTER = (
    "if this is another cluster, its topics hold what comes after the change: move the changefeed to it (a new"
    " `changefeed` with a dump); if it is the same one under other addresses, set"
    ' source.unproven-beginning = "accept" for one run'
)
_UNREADABLE = (ValueError, TypeError, RecursionError)

log = structlog.get_logger()


@dataclass(slots=True)
class CheckpointApi:
    """Asks TiCDC's Open API v2 for one changefeed."""

    url: str
    changefeed: str
    keyspace: str
    limits: LimitsSection = field(default_factory=LimitsSection)
    _lines: Lines = field(default_factory=lambda: Lines(None))

    @property
    def place(self) -> str:
        """What is asked, without a login."""
        parts = urlsplit(self.url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{parts.scheme}://{host}:{parts.port or ''}".rstrip(":")

    def checkpoint(self) -> "TicdcCheckpoint":
        """The changefeed's checkpoint, and where it began.

        Raises SourceUnreachableError, SourceError, and InputError for what is none.
        """
        query = urlencode({"keyspace": self.keyspace, "namespace": self.keyspace})
        path = f"/api/v2/changefeeds/{quote(self.changefeed, safe='')}?{query}"
        request = urllib.request.Request(self.place + path, headers=self._headers())  # noqa: S310 checked with the config
        opener = urllib.request.build_opener(NoRedirects(), urllib.request.ProxyHandler({}), self._lines)
        try:
            with self._lines.within(_WHOLE_S), opener.open(request, timeout=_TIMEOUT_S) as answer:
                body = answer.read(_LONGEST + 1)
                if answer.length and len(body) <= _LONGEST:  # what is left of Content-Length: http.client keeps silent
                    raise IncompleteRead(body, answer.length)
        except HTTPError as error:
            raise self._refused(error) from None
        except (OSError, HTTPException, ValueError) as error:
            raise self._silent(error) from None
        return self._read(body)

    def _headers(self) -> dict[str, str]:
        parts = urlsplit(self.url)
        if parts.username is None:
            return {"Accept": "application/json"}
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return {"Accept": "application/json", "Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}

    def _refused(self, error: HTTPError) -> SourceError:
        where, code = f"source.watermark-from = {self.place}", error.code
        error.close()
        if code >= 500:  # noqa: PLR2004 TiCDC answers so while no owner is elected, too
            return SourceUnreachableError(f"TiCDC answers {code}", where=where)
        if 300 <= code < 400:  # noqa: PLR2004
            fact = f"TiCDC's API answers {code}: it leads elsewhere, and redirects are not followed"
            return SourceError(fact, where=where, hint="name the TiCDC server itself")
        hint = "source.watermark-changefeed and watermark-keyspace have to be the upstream's, and the login"
        fact = f"TiCDC's API answers {code} about changefeed {self.changefeed!r} of {self.keyspace!r}"
        return SourceError(fact, where=where, hint=hint)

    def _silent(self, error: Exception) -> SourceError:
        cause = error.reason if isinstance(error, URLError) else error
        where = f"source.watermark-from = {self.place}"
        if isinstance(cause, SSLError):
            return SourceError(f"TiCDC's API has no certificate that is trusted: {cause}", where=where)
        return SourceUnreachableError(f"TiCDC's API does not answer: {cause}", where=where)

    def _read(self, body: bytes) -> "TicdcCheckpoint":
        if len(body) > _LONGEST:
            raise self._odd(f"its answer is longer than {_LONGEST} bytes")
        try:
            found: Any = json.loads(body)
        except _UNREADABLE:
            raise self._odd("its answer is no JSON") from None
        if not isinstance(found, dict):
            raise self._odd("its answer is no JSON object")
        space = found.get("keyspace") or found.get("namespace") or self.keyspace
        if found.get("id") != self.changefeed or space != self.keyspace:
            raise self._odd(f"it answers about changefeed {str(found.get('id'))[:80]!r} of {str(space)[:80]!r}")
        ts = found.get("checkpoint_ts")
        if not isinstance(ts, int) or isinstance(ts, bool) or not 0 < ts <= _LAST_TSO:
            raise self._odd("its answer has no checkpoint_ts")
        check_clock(ts, self.limits, f"source.watermark-from = {self.place}")
        begun = found.get("start_ts")
        begun = begun if isinstance(begun, int) and begun <= _LAST_TSO else 0
        sink = read_sink(found)
        if sink.fault:
            raise self._odd(sink.fault)
        return TicdcCheckpoint(ResolvedTs(ts), begun, sink)

    def _odd(self, fact: str) -> InputError:
        hint = "source.watermark-from has to name a TiCDC server, and the changefeed that writes these topics"
        return InputError(
            f"TiCDC's API can't be used: {fact}", where=f"source.watermark-from = {self.place}", hint=hint
        )


class TicdcCheckpoint(NamedTuple):
    """What the API says of a changefeed. `begun`: its start-ts: what lies at or below it was not sent; 0: not told."""

    checkpoint: ResolvedTs
    begun: int
    sink: TicdcSink = TicdcSink()


@dataclass(slots=True)
class OutsideWatermark:
    """What the API said, and up to which offset of each partition it counts; without an API, nothing."""

    api: CheckpointApi | None
    _begun: int = 0
    _brokers: frozenset[str] = frozenset()
    """Those of the sink URI, as it was told last."""
    _has_answered: bool = False
    _is_silent: bool = False
    _others: set[str] = field(default_factory=set)
    """Topics that the changefeed does not write to, as far as they were named in the log."""
    _vouched: dict[Partition, list[tuple[ResolvedTs, int]]] = field(default_factory=dict)

    def ask(self, written: Callable[[], Mapping[Partition, int]]) -> None:
        """Ask for the checkpoint, and after that up to where anything is written. Raises as the API does.

        `written`: asks for the ends of all that is written, whether or not it can be read yet: what TiCDC wrote may lie
        behind another producer's open transaction. If TiCDC is silent after it has answered once, nothing new is known.
        """
        if self.api is None:
            return
        try:
            found, self._begun, sink = self.api.checkpoint()
        except SourceUnreachableError as error:
            if not self._has_answered:
                raise
            if not self._is_silent:
                log.warning("TiCDC gives no checkpoint; what has none else waits", error=error.fact, at=error.where)
            self._is_silent = True
            return
        self._is_silent, self._has_answered, self._brokers = False, True, sink.brokers
        ends = written()
        self._check_topics(sink, {partition.topic for partition in ends})
        for partition, end in ends.items():
            if partition.topic in self._others:
                continue
            known = self._vouched.setdefault(partition, [])
            known.append((found, end))
            del known[_KEPT // 2 : -_KEPT // 2]

    def _check_topics(self, sink: TicdcSink, topics: set[str]) -> None:
        """Note the topics that the changefeed does not write to. Raises InputError where it writes to none of them."""
        others = {topic for topic in topics if not sink.writes(topic)}
        if topics and others == topics:
            fact = (
                f"TiCDC's changefeed writes to {', '.join(sink.topics)[:200]}, and to none of the topics that are read"
            )
            place = "" if self.api is None else self.api.place
            raise InputError(fact, where=f"source.watermark-from = {place}", hint=_OTHER_TOPICS)
        for topic in sorted(others - self._others):
            log.warning(
                "TiCDC's changefeed does not write to a topic: its checkpoint does not count there", topic=topic
            )
        self._others = others

    def check_brokers(self, known: Mapping[str, TopicProgress], *, accepted: bool) -> None:
        """Raise InputError where TiCDC has written a topic by other brokers: it may be another cluster's by this name.

        `accepted`: it is the same cluster, under other addresses.
        """
        for name, topic in known.items():
            if accepted or not self._tells_of(name) or not topic.brokers or topic.brokers & self._brokers:
                continue
            now, before = (", ".join(sorted(one))[:200] for one in (self._brokers, topic.brokers))
            place = "" if self.api is None else self.api.place
            raise InputError(
                f"TiCDC's changefeed writes to {now} now, and to none of the brokers of before ({before})",
                where=f"source.watermark-from = {place}, topic={name}",
                hint=_OTHER_CLUSTER,
            )

    def by_brokers(self, known: Mapping[str, TopicProgress]) -> Mapping[str, TopicProgress]:
        """The topics with the brokers by which TiCDC writes them, as far as that is told."""
        return {
            name: replace(topic, brokers=self._brokers) if self._tells_of(name) else topic
            for name, topic in known.items()
        }

    def _tells_of(self, topic: str) -> bool:
        return bool(self._brokers) and topic not in self._others

    def began_after(self, applied: int) -> bool:
        """Whether TiCDC's changefeed began above what is applied: it was made again, and left rows out.

        `applied`: the checkpoint, 0 for a changefeed that begins with what the topics hold.
        """
        return 0 < applied < self._begun

    def check_begun(self, applied: int, *, accepted: bool) -> None:
        """Raise BeginningLostError where `began_after`. `accepted`: say so alone."""
        if not self.began_after(applied):
            return
        fact = (
            f"TiCDC's changefeed began at {self._begun} ({utc_text(self._begun)} UTC), and what is applied ends at"
            f" {applied} ({utc_text(applied)} UTC): it was made again, and what lies between was not sent"
        )
        if accepted:
            log.warning(fact)
            return
        place = "" if self.api is None else self.api.place
        hint = (
            "make it again with --start-ts at or below the checkpoint, set source.archive to files that hold what lies"
            " between, or rebuild the target from a dump; if nothing"
            ' was changed upstream in between, set source.unproven-beginning = "accept" for one run'
        )
        raise BeginningLostError(fact, where=f"source.watermark-from = {place}", hint=hint)

    def forget(self, topic: str) -> None:
        """Forget a topic that was created again: its offsets begin at 0."""
        self._vouched = {p: known for p, known in self._vouched.items() if p.topic != topic}

    def upto(self, partition: Partition, bound: int) -> ResolvedTs | None:
        """The watermark of what is read up to an offset."""
        known = self._vouched.get(partition, [])
        return max((ts for ts, end in known if end <= bound), default=None)


def outside_of(config: Config) -> OutsideWatermark:
    """As the config says."""
    source = config.source
    if not source.watermark_from:
        return OutsideWatermark(None)
    name = source.watermark_changefeed or config.changefeed
    return OutsideWatermark(CheckpointApi(source.watermark_from, name, source.watermark_keyspace, config.limits))
