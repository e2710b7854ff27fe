"""What the API answers where somebody acts on the page: quarantined messages, a check, a config and its difference."""

import base64
from typing import Any

from consumer.serve.api.decision_models import MessageAside, QuarantinedMessage, QuarantineList, VerdictLine, Verdicts
from consumer.serve.api.models import ChangePreview, CheckLine, CheckResult, ConfigShown, KeyChange, Status
from tests.page import scenes
from tests.page.stage import Stage

CONFIG = """\
changefeed = "orders"

[source]
bootstrap-servers = "kafka-1.internal:9092"
topics = ["cdc-orders"]

[target]
uri = "postgresql://reconciler:***@db-2.internal:5432/warehouse"

[limits]
writers = 4
"""
VALUE = b'{"id":0,"database":"shop","table":"orders","type":"INSERT","data":[{"id":"77","note":"%s"}]}'
DECODED = """{
  "database": "shop",
  "table": "orders",
  "data": [
    { "id": "77", "note": "NOTE" }
  ]
}"""
HOSTILE = f"{scenes.SCRIPT}{scenes.TURNED}"


def aside(offset: int, state: str = "held", **more: Any) -> MessageAside:
    """A quarantined message."""
    values = {
        "message": f"cdc-orders/1/{offset}",
        "topic": "cdc-orders",
        "partition": 1,
        "offset": offset,
        "state": state,
        "about": f"shop.orders, key id='{offset}'",
        "reason": "value too long for type character varying(10): column note",
        "commit_ts": scenes.tso(scenes.NOW - 600),
        "commit_time": "",
        "timestamp": int((scenes.NOW - 599) * 1000),
        "note": "",
        "updated_at": None,
    }
    return MessageAside.model_validate(values | more)


def content(one: MessageAside, note: str = "far too long for ten") -> QuarantinedMessage:
    """The same with its content."""
    value = VALUE % note.encode()
    more = {
        "key": None,
        "value": base64.b64encode(value).decode(),
        "value_bytes": len(value),
        "is_whole": True,
        "decoded": DECODED.replace("NOTE", note),
        "fault": "",
    }
    return QuarantinedMessage.model_validate(one.model_dump() | more)


def quarantined(name: str = "orders") -> Status:
    """A changefeed with messages in quarantine."""
    return scenes.status(name, quarantine={"held": 3, "superseded": 1, "discarded": 1}, quarantined=5)


def quarantine_of(stage: Stage, name: str = "orders", **hostile: str) -> None:
    """Let the stage hold its messages; decisions are carried out."""
    items = [
        aside(88_120, **hostile),
        aside(88_131, about="", reason="the message is no JSON: unexpected end", commit_ts=None),
        aside(88_140, "superseded"),
        aside(88_172),
        aside(88_190, "discarded", note="test data"),
    ]
    states = {one.message: one.state for one in items}

    def listed(_: Any) -> QuarantineList:
        found = [one.model_copy(update={"state": states[one.message]}) for one in items]
        return QuarantineList(total=len(found), items=found)

    def decided(state: str, among: set[str], body: dict[str, Any], why: str) -> Verdicts:
        chosen = body.get("messages") or [one for one, was in states.items() if was in among]
        states.update(dict.fromkeys(chosen, state))
        feed = stage.scene.feeds[name]
        counts = {word: sum(was == word for was in states.values()) for word in set(states.values())}
        stage.scene.feeds[name] = feed.model_copy(update={"quarantine": counts})
        return Verdicts(items=[VerdictLine(message=one, state=state, why=why) for one in chosen])

    stage.answers |= {
        f"GET /{name}/quarantine": listed,
        f"POST /{name}/quarantine/replay": lambda body: decided("replayed", {"held"}, body, "shop.orders"),
        f"POST /{name}/quarantine/discard": lambda body: decided(
            "discarded", {"held", "superseded"}, body, body["reason"]
        ),
    } | {
        f"GET /{name}/quarantine/{one.message}": content(one, hostile.get("note", "far too long")) for one in items
    }  # fmt: skip


def checked(*, ok: bool = True) -> CheckResult:
    """What a check says."""
    kafka = {"fact": "1 topic, 4 partitions", "ok": True, "exit_code": 0}
    if not ok:
        fact = "no answer from 127.0.0.1:9092: connection refused"
        hint = "is `bootstrap-servers` right, and Kafka running?"
        kafka = {"fact": fact, "ok": False, "exit_code": 3, "where": "Kafka at 127.0.0.1:9092", "hint": hint}
    lines = [
        {"subject": "config", "fact": "changefeed refunds, consistency snapshot"},
        {"subject": "target", "fact": "PostgreSQL 16.4 at db-2.internal:5432/warehouse"},
        {"subject": "filter", "fact": "all tables"},
        {"subject": "kafka", **kafka},
        {
            "subject": "redis",
            "fact": "absent by configuration: repetitions of what earlier windows applied are dropped unproven",
        },
    ]
    empty = {"ok": True, "is_whole": True, "where": "", "hint": "", "exit_code": 0}
    return CheckResult(ok=ok, items=[CheckLine.model_validate(empty | one) for one in lines])


def config_of(stage: Stage, name: str = "orders") -> None:
    """Let the stage hold a config that can be edited: more writers, and a secret that differs."""
    keys = [
        KeyChange(key="limits.writers", before="4", after="8"),
        KeyChange(key="quarantine.enabled", before=None, after="true"),
        KeyChange(key="target.uri", before='"postgresql://reconciler:***@db-2.internal"', after=None),
    ]
    change = {"limits": {"writers": 8}}
    stage.answers |= {
        f"GET /{name}/config": ConfigShown(file=f"/srv/changefeeds/{name}.toml", config={}, text=CONFIG),
        f"POST /{name}/preview": ChangePreview(keys=keys, restarts=True, change=change),
        f"PUT /{name}": ConfigShown(file="", config={}, text=None),
    }
