"""The schema registry over HTTP: what is asked, what is kept, and answers that must not be believed."""

import base64
import json
import pickle
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from consumer.config.model import config_from
from consumer.formats.avro.registry import SchemaRegistry
from consumer.wiring import format_of, registry_of
from ordering.errors import (
    AnotherProtocolError,
    BodyMissingError,
    ConfigError,
    InputError,
    ReconcilerError,
    SourceError,
    SourceUnreachableError,
)
from tests.certificates import Authority
from tests.service.schema_registry import Answer, FakeRegistry
from tests.service.tls_front import tls_front

KEY = {
    "type": "record", "name": "t", "namespace": "default.d",
    "fields": [{"name": "id", "type": {"type": "int", "connect.parameters": {"tidb_type": "INT"}}}],
}  # fmt: skip
TEXT = json.dumps(KEY)


def test_a_schema_is_asked_for_once(registry: FakeRegistry) -> None:
    number = registry.register("t-key", TEXT)
    for _ in range(3):
        found = pickle.loads(pickle.dumps(SchemaRegistry(registry.url))).schema(number)  # noqa: S301 our own
        assert found.name == ("d", "t")
    assert registry.asked == [f"/schemas/ids/{number}"]
    assert registry.logins == [None]


SUBJECTS = {
    "its own": [{"subject": "cdc_t-key", "version": 1}],
    "of several": [{"subject": "cdc_u-key"}, {"subject": "cdc_t-value"}],
    "not read": [{"subject": "t-key"}, {"subject": "cdc-key"}], "odd": [{"subject": ""}, {"subject": "u"}], "none": [],
}  # fmt: skip


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_schema_that_may_be_the_topics_is_taken(registry: FakeRegistry, name: str) -> None:
    number = registry.register("t-key", TEXT)
    told = json.dumps(SUBJECTS[name]).encode()
    registry.instead = lambda path: (200, {}, told) if "versions" in path else None
    asked = SchemaRegistry(registry.url, topics=("~cdc_.*",))
    for _ in range(3):
        assert asked.schema_of("cdc_t", number).name == ("d", "t")
    assert registry.asked == [f"/schemas/ids/{number}", f"/schemas/ids/{number}/versions?deleted=true"]


@pytest.mark.parametrize("answer", [(404, {}, b""), (403, {}, b""), (500, {}, b""), (200, {}, b"{}"), (200, {}, b"x")])
def test_a_registry_that_does_not_tell_whose_a_schema_is(registry: FakeRegistry, answer: Answer) -> None:
    number = registry.register("cdc_u-key", TEXT)
    registry.instead = lambda path: answer if "versions" in path else None
    assert SchemaRegistry(registry.url, topics=("~cdc_.*",)).schema_of("cdc_t", number).name == ("d", "t")


def test_a_schema_of_another_topic_is_refused(registry: FakeRegistry) -> None:
    number = registry.register("cdc_u-value", TEXT)
    asked = SchemaRegistry(registry.url, topics=("cdc_t", "cdc_u"))
    with pytest.raises(InputError, match=r"another topic's \(cdc_u\)"):
        asked.schema_of("cdc_t", number)
    assert asked.schema_of("cdc_u", number).name == ("d", "t")


def test_another_registry_has_other_schemas(registry: FakeRegistry) -> None:
    number = registry.register("t-key", TEXT)
    SchemaRegistry(registry.url).schema(number)
    SchemaRegistry(f"{registry.url}/").schema(number)
    assert len(registry.asked) == 2


def test_a_login_is_sent_and_never_shown(registry: FakeRegistry) -> None:
    number = registry.register("t-key", TEXT)
    registry.login = "me:s3cr@t"
    asked = SchemaRegistry(registry.url.replace("//", "//me:s3cr%40t@"))
    assert asked.schema(number).name == ("d", "t")
    assert registry.logins == ["Basic " + base64.b64encode(b"me:s3cr@t").decode()]
    assert "s3cr" not in repr(asked)
    wrong = SchemaRegistry(registry.url.replace("//", "//me:other%20s3cret@"))
    with pytest.raises(SourceError) as caught:
        wrong.schema(number)
    assert "401" in caught.value.fact
    assert "s3cret" not in f"{caught.value} {wrong!r} {wrong.place}"


def test_what_may_pass_is_asked_again(registry: FakeRegistry) -> None:
    number = registry.register("t-key", TEXT)
    answers: list[Answer | None] = [(503, {}, b""), (404, {}, b""), None]
    registry.instead = lambda _: answers.pop(0)
    assert SchemaRegistry(registry.url).schema(number).name == ("d", "t")
    assert answers == []


REFUSALS = {
    401: SourceError, 403: SourceError, 400: SourceError, 302: SourceError, 308: SourceError,
    404: BodyMissingError, 429: SourceUnreachableError, 500: SourceUnreachableError, 503: SourceUnreachableError,
}  # fmt: skip


@pytest.mark.parametrize("status", REFUSALS)
def test_refusals(registry: FakeRegistry, status: int) -> None:
    number = registry.register("t-key", TEXT)
    registry.instead = lambda _: (status, {"Location": f"{registry.url}/elsewhere"}, b"")
    with pytest.raises(SourceError) as caught:
        SchemaRegistry(registry.url.replace("//", "//me:s3cr@")).schema(number)
    assert type(caught.value) is REFUSALS[status]
    assert caught.value.exit_code == 3
    assert "s3cr" not in str(caught.value)
    assert "/elsewhere" not in registry.asked


def answered(value: Any) -> bytes:
    return json.dumps(value).encode()


BODIES: dict[str, bytes] = {
    "no JSON": b"<html>", "a list": b"[]", "nothing": b"", "cut": b'{"schema":"', "deep": b"[" * 100_000,
    "no UTF-8": b'{"schema":"\xff"}', "no schema": b"{}", "a number": answered({"schema": 7}),
    "without an end": b" " * ((4 << 20) + 1), "a schema that is no JSON": answered({"schema": "{"}),
    "a schema nested deeply": answered({"schema": '{"type":' * 100_000}),
    "protobuf": answered({"schema": TEXT, "schemaType": "PROTOBUF"}),
    "references": answered({"schema": TEXT, "references": [{"name": "x"}]}), "a text": answered({"schema": '"int"'}),
    "empty": answered({"schema": ""}), "a lone surrogate": answered({"schema": '{"name":"\ud800"}'}),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_answers_that_are_none(registry: FakeRegistry, name: str) -> None:
    registry.instead = lambda _: (200, {}, BODIES[name])
    with pytest.raises(InputError) as caught:
        SchemaRegistry(registry.url).schema(1)
    assert type(caught.value) is InputError
    assert registry.url in caught.value.where
    assert len(registry.asked) == 1


def test_debezium(registry: FakeRegistry) -> None:
    names = ("before", "after", "source", "op")
    number = registry.register("t", json.dumps({**KEY, "fields": [{"name": n, "type": "string"} for n in names]}))
    with pytest.raises(AnotherProtocolError, match="Debezium"):
        SchemaRegistry(registry.url).schema(number)


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(SourceUnreachableError) as caught:
        SchemaRegistry("http://127.0.0.1:1").schema(1)
    assert "source.schema-registry = http://127.0.0.1:1" in caught.value.where


def test_the_certificate_is_checked(registry: FakeRegistry, tmp_path: Path) -> None:
    number = registry.register("t-key", TEXT)
    trusted, other = Authority(tmp_path, "trusted"), Authority(tmp_path, "other")
    shown = trusted.issue("registry", ["127.0.0.1"])
    plain = urlsplit(registry.url)
    with tls_front(plain.port or 0, shown) as port:
        url = f"https://127.0.0.1:{port}{plain.path}"
        assert SchemaRegistry(url, str(trusted.file)).schema(number).name == ("d", "t")
        for authorities in ("", str(other.file)):
            with pytest.raises(SourceError, match="certificate") as caught:
                SchemaRegistry(url, authorities).schema(number)
            assert type(caught.value) is SourceError
        with pytest.raises(ConfigError, match="schema-registry-ca"):
            SchemaRegistry(url, str(tmp_path / "none.pem")).schema(number)


def test_threads_share_what_is_kept(registry: FakeRegistry) -> None:
    numbers = [registry.register("t", json.dumps({**KEY, "name": f"t{n}"})) for n in range(20)]
    asked, found = SchemaRegistry(registry.url), list[tuple[str, str]]()
    threads = [threading.Thread(target=lambda: found.extend(asked.schema(n).name for n in numbers)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count(("d", "t7")) == 4
    assert len(found) == 80


def source(**told: Any) -> dict[str, Any]:
    return {
        "changefeed": "c", "target": {"uri": "sqlite:////tmp/x"},
        "source": {"bootstrap-servers": "h:1", "topics": ["t"], "protocol": "avro", **told},
    }  # fmt: skip


MARKS = {"avro-enable-watermark": True}
REGISTRY = {"schema-registry": "http://registry:8081"}


def test_the_config_says_where_it_is() -> None:
    config = config_from(source(**MARKS, **REGISTRY, **{"schema-registry-ca": "/ca.pem"}), "here")
    assert registry_of(config) == SchemaRegistry("http://registry:8081", "/ca.pem", ("t",))
    assert format_of(config).name == "avro"
    config_from(source(**REGISTRY, **{"watermark-from": "http://ticdc:8300"}), "here")


@pytest.mark.parametrize(
    ("told", "hint"),
    [
        (MARKS, "schema-registry"),
        (REGISTRY, "enable-tidb-extension=true&avro-enable-watermark=true"),
        (REGISTRY, "watermark-from"),
        ({**MARKS, "schema-registry": "registry:8081"}, "address of a schema registry"),
        ({**MARKS, "schema-registry": "ftp://u:s3cr@registry"}, "address of a schema registry"),
        ({**MARKS, "schema-registry": "http://u:s3cr@registry:99999"}, "address of a schema registry"),
        ({**MARKS, "schema-registry": "http://registry?key=s3cr"}, "address of a schema registry"),
        ({**MARKS, **REGISTRY, "schema-registry-ca": "ca.pem"}, "absolute path"),
    ],
)
def test_what_the_config_lacks_is_refused_with_the_setting(told: dict[str, Any], hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from(source(**told), "here")
    assert hint in str(caught.value)
    assert "s3cr" not in str(caught.value)
    assert isinstance(caught.value, ReconcilerError)
    assert caught.value.exit_code == 2
