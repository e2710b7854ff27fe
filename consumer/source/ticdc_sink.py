"""Where a changefeed of TiCDC writes, as its API tells: its checkpoint is about that alone.

A row goes to the topic of the first dispatcher that matches its table, or to the one in the sink URI's path. Facts:
pingcap/ticdc, `downstreamadapter/sink/eventrouter`, `pkg/sink/kafka/options.go`, `api/v2/model.go`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

_KAFKA = {"kafka", "kafka+ssl"}
_ALL = "-1"
_PLACEHOLDER = re.compile(r"\{schema\}|\{table\}")
_LONGEST = 249
"""Characters of a topic's name: TiCDC cuts off what is behind."""


@dataclass(frozen=True, slots=True)
class TicdcSink:
    """A sink. `scheme`: "" where the API tells none, so nothing is known; `topics`: names, and TiCDC's expressions.

    `brokers`: the addresses (host:port) of Kafka that TiCDC begins with.
    """

    scheme: str = ""
    topics: tuple[str, ...] = ()
    acks: str = _ALL
    brokers: frozenset[str] = frozenset()

    @property
    def fault(self) -> str:
        """Why no checkpoint of such a changefeed tells that its rows lie in Kafka; "" where one does."""
        if self.scheme and self.scheme not in _KAFKA:
            return f"the changefeed writes to {self.scheme}://, not to Kafka"
        if self.acks != _ALL:
            return (
                f"the changefeed has required-acks={self.acks}, so its checkpoint passes rows that Kafka may not have"
            )
        return ""

    def writes(self, topic: str) -> bool:
        """Whether rows of some table may go to a topic."""
        return not self.scheme or any(_is_of(topic, expression) for expression in self.topics)


def _is_of(topic: str, expression: str) -> bool:
    """Whether a topic can be what TiCDC makes of an expression. Takes time linear in both."""
    first, *rest = _PLACEHOLDER.split(expression)
    if not rest:
        return topic == expression
    if not topic.startswith(first):
        return False
    if len(topic) >= _LONGEST:
        return True  # it may have been cut off
    at, last = len(first), rest.pop()
    for part in rest:
        found = topic.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return topic.endswith(last) and len(topic) - len(last) >= at


def read_sink(found: Mapping[str, Any]) -> TicdcSink:
    """What the API's answer tells of the sink; what it tells in another form counts as not told."""
    uri = found.get("sink_uri")
    try:
        parts = urlsplit(uri) if isinstance(uri, str) else SplitResult("", "", "", "", "")
    except ValueError:
        return TicdcSink()
    told = _within(_within(found.get("config"), "sink"), "kafka_config")
    acks = told.get("required_acks")
    asked = parse_qs(parts.query, keep_blank_values=True).get("required-acks")  # TiCDC reads a blank one as 0
    asked = asked or [_ALL if acks is None else str(acks)]
    topics = tuple(one for one in (unquote(parts.path).strip("/"), *_expressions(found)) if one)
    brokers = frozenset(filter(None, parts.netloc.rpartition("@")[2].lower().split(",")))
    return TicdcSink(parts.scheme.lower(), topics, asked[0], brokers)


def _within(found: Any, name: str) -> Mapping[str, Any]:
    inner = found.get(name) if isinstance(found, dict) else None
    return inner if isinstance(inner, dict) else {}


def _expressions(found: Mapping[str, Any]) -> Sequence[str]:
    rules = _within(found.get("config"), "sink").get("dispatchers")
    told = [rule.get("topic") for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []
    return [topic for topic in told if isinstance(topic, str)]
