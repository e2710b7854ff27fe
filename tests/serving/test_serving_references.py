"""What configs that come through the API may refer to, and what is shown of a config."""

import copy
from functools import reduce
from pathlib import Path
from typing import Any

import orjson
import pytest
import tomlkit

from consumer.config.model import Config, config_of
from consumer.serve.api.errors import ConflictError, RequestError
from consumer.serve.config.references import HIDDEN, URIS, check_destination, check_references
from consumer.serve.config.shown import shown
from consumer.serve.settings import Api
from ordering.errors import ConfigError
from tests.serving.test_serving_rules import REQUIRED, TEXT, keys_of

LISTED = Api(
    **{
        "variables": ["ORDERS_*"],
        "files": ["/run/secrets/orders-*"],
        "claim-check-locations": ["s3://bucket/orders"],
        "storage-locations": ["s3://cdc"],
        "directories": ["/data/targets"],
    }
)


@pytest.mark.parametrize(
    "values",
    [
        {"changefeed": "${ORDERS_X}"},
        {"changefeed": "file:/run/secrets/orders-x"},
        {"source": {"topics": ["${ORDERS_X}"]}},
        {"source": {"bootstrap-servers": "${ORDERS_X}:9092"}},
        {"target": {"uri": "file:/etc/passwd"}},
        {"target": {"uri": "file:/run/secrets/../../etc/passwd"}},
        {"target": {"uri": "file:/run/secrets/orders-/../../../etc/passwd"}},
        {"target": {"uri": "file:/run/secrets/orders-x/y"}},
        {"target": {"uri": "file:\0"}},
        {"target": {"uri": "file:passwd"}},
        {"target": {"uri": "file: /etc/passwd"}},
        {"target": {"uri": "mysql://u:${HOME}@h:3306"}},
        {"target": {"uri": "mysql://u:${RECONCILER_TOKEN}@h:3306"}},
        {"target": {"uri": "mysql://u:p@${ORDERS_X}:3306"}},
        {"target": {"uri": "mysql://u:p@h:3306?ssl-ca=${ORDERS_X}"}},
        {"target": {"uri": "mysql://u:p@h:3306?ssl-key=/root/.ssh/id_rsa"}},
        {"target": {"uri": "postgresql://u:p@h/d?sslcert=%2Froot%2Fx"}},
        {"redis": {"uri": "redis://:***@h/0"}},
        {"redis": {"uri": "rediss://h/0?ssl_certfile=/root/x"}},
        {"redis": {"uri": "unix:///var/run/docker.sock"}},
        {"redis": {"uri": "unix://:password@/run/secrets/../x.sock"}},
        {"filter": {"rules": ["@/etc/passwd"]}},
        {"filter": {"rules": [" @/etc/passwd"]}},
        {"filter": {"rules": ["*.*", "\t @/etc/passwd"]}},
        {"filter": {"rules": ["@rules.txt"]}},
        {"filter": {"event-filters": [{"matcher": ["@../x"]}]}},
        {"source": {"kafka": {"sasl.password": "file:/proc/self/environ"}}},
        {"source": {"kafka": {"client.id": "${ORDERS_X}"}}},
        {"source": {"kafka": {"ssl.key.location": "/root/key.pem"}}},
        {"source": {"schema-registry-ca": "/root/ca.pem"}},
        {"source": {"schema-registry-ca": "file:/run/secrets/orders-x"}},
        {"source": {"schema-registry": "https://u:p@${ORDERS_X}:8081"}},
        {"source": {"claim-check": {"locations": ["file:///etc"]}}},
        {"source": {"claim-check": {"locations": ["${ORDERS_X}"]}}},
        {"source": {"claim-check": {"locations": ["s3://bucket/orders/${ORDERS_X}"]}}},
        {"source": {"claim-check": {"locations": ["s3://bucket/orders-of-others"]}}},
        {"source": {"claim-check": {"locations": ["s3://bucket/orders/%2e%2e/private"]}}},
        {"source": {"claim-check": {"locations": ["s3://bucket/orders/.%2E/private"]}}},
        {"source": {"claim-check": {"locations": ["s3a://bucket/orders/x%2F%2e%2e%2F%2e%2e"]}}},
        {"source": {"claim-check": {"map": {"s3://bucket/orders": "http://127.0.0.1/"}}}},
        {"source": {"claim-check": {"options": {"federated-token-file": "/etc/passwd"}}}},
        {"source": {"claim-check": {"options": {"authority-host": "http://evil"}}}},
        {"source": {"claim-check": {"options": {"ENDPOINT": "http://evil"}}}},
        {"source": {"storage": "file:///etc"}},
        {"source": {"storage": "s3://bucket/orders"}},
        {"source": {"storage": "${ORDERS_X}"}},
        {"source": {"storage-options": {"endpoint": "http://evil"}}},
        {"source": {"storage-options": {"google-application-credentials": "/etc/passwd"}}},
        {"source": {"storage-options": {"secret-access-key": "${HOME}"}}},
        {"source": {"storage-options": {"bucket": "other"}}},
        {"source": {"storage-options": {"container_name": "other"}}},
        {"target": {"warehouse-options": {"BUCKET": "other"}}},
        {"source": {"storage-options": {"region": "x@evil.example/"}}},
        {"source": {"archive-options": {"region": "evil.example#"}}},
        {"source": {"claim-check": {"options": {"account-name": "evil.example/"}}}},
        {"source": {"claim-check": {"options": {"account_name": "${ORDERS_X}@evil.example/"}}}},
        {"source": {"claim-check": {"options": {"service-account-key": '{"gcs_base_url": "http://evil"}'}}}},
        {"source": {"storage-options": {"service-account-key": '{"gcs\\u005fbase_url": null}'}}},
        {"source": {"storage-options": {"service-account-key": '["gcs_base_url"]'}}},
        {"source": {"storage-options": {"service-account-key": "${ORDERS_X}{}"}}},
        {"target": {"uri": "sqlite:////etc/x"}},
        {"target": {"uri": "sqlite:///x"}},
        {"target": {"uri": "sqlite:////data/targets/../other"}},
        {"target": {"uri": "sqlite:////data/targets%2F..%2Fother"}},
        {"target": {"uri": "sqlite:////data/targets-of-others"}},
        {"target": {"uri": "iceberg+sqlite:////etc/c.db?warehouse=/data/targets/w"}},
        {"target": {"uri": "iceberg+sqlite:////data/targets/c.db?warehouse=/etc/w"}},
        {"target": {"uri": "iceberg+sqlite:////data/targets/c.db?warehouse=s3://bucket/orders"}},
        {"target": {"uri": "iceberg+sqlite:////etc/c.db?warehouse=s3://cdc/lake"}},
        {"target": {"uri": "iceberg+postgresql://u:p@h/d?warehouse=/etc/w"}},
        {"target": {"uri": "iceberg+postgresql://u:p@h/d?warehouse=s3://bucket/orders"}},
        {"target": {"uri": "iceberg+postgresql://u:p@h/d?warehouse=/data/targets/w&sslrootcert=/etc/shadow"}},
        {"target": {"warehouse-options": {"endpoint": "http://evil"}}},
        {"target": {"warehouse-options": {"secret-access-key": "${HOME}"}}},
        {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {"j": {"k": {"l": {"m": {"n": 1}}}}}}}}}}}}}},
    ],
)
@pytest.mark.parametrize("allowed", [Api(), LISTED])
def test_references_that_the_api_may_not_make(values: dict[str, Any], allowed: Api, tmp_path: Path) -> None:
    with pytest.raises(RequestError) as caught:
        check_references(values, tmp_path, allowed)
    assert "root:" not in str(caught.value)


def test_references_that_it_may_make_once_they_are_listed(tmp_path: Path) -> None:
    values = {
        "target": {"uri": "mysql://u:${ORDERS_PASSWORD}@h:3306?ssl-ca=/etc/ssl/certs/ca.pem"},
        "redis": {"uri": "file:/run/secrets/orders-redis"},
        "source": {
            "schema-registry": "https://u:${ORDERS_PASSWORD}@h:8081",
            "schema-registry-ca": "/etc/ssl/certs/ca.pem",
            "storage": "s3://cdc/orders",
            "storage-options": {"region": "eu-west-1", "secret-access-key": "file:/run/secrets/orders-s3"},
            "kafka": {"sasl.password": "file:/run/secrets/orders-kafka", "ssl.ca.location": "/etc/ssl/certs/ca.pem"},
            "claim-check": {
                "locations": ["s3://bucket/orders", "s3://bucket/orders/large"],
                "options": {
                    "region": "eu-west-1",
                    "secret-access-key": "${ORDERS_S3}",
                    "account-name": "orders1",
                    "service-account-key": '{"type": "service_account", "private_key": "x"}',
                },
            },
        },
    }
    check_references(values, tmp_path, LISTED)
    lake = {
        "uri": "iceberg+sqlite:////data/targets/c.db?warehouse=s3://cdc/lake",
        "warehouse-options": {"region": "eu-west-1", "secret-access-key": "${ORDERS_S3}"},
    }
    check_references({"target": lake}, tmp_path, LISTED)
    with pytest.raises(RequestError):
        check_references(values, tmp_path, Api())


def test_directories_of_targets_once_they_are_listed(tmp_path: Path) -> None:
    place = tmp_path / "targets"
    place.mkdir()
    (place / "out").symlink_to("/etc")
    allowed = Api(directories=[str(place)])
    for uri in (f"sqlite:///{place}/orders", f"iceberg+sqlite:///{place}/c.db?warehouse={place}/w"):
        check_references({"target": {"uri": uri}}, tmp_path, allowed)
        with pytest.raises(RequestError, match="may be in this directory"):
            check_references({"target": {"uri": uri}}, tmp_path, Api())
    with pytest.raises(RequestError, match="may be in this directory"):
        check_references({"target": {"uri": f"sqlite:///{place}/out"}}, tmp_path, allowed)


def test_a_link_leads_out_of_no_place_of_files(tmp_path: Path) -> None:
    """A place of files of this machine is what its path leads to, as with directories of targets."""
    place = tmp_path / "cdc"
    place.mkdir()
    (place / "orders").mkdir()
    (place / "link").symlink_to("/etc")
    allowed = Api(**{"storage-locations": [f"file://{place}"], "claim-check-locations": [f"file://{place}"]})
    for values in ({"storage": "file://{}"}, {"archive": "file://{}"}, {"claim-check": {"locations": ["file://{}/x"]}}):
        text = orjson.dumps(values).decode()
        check_references({"source": orjson.loads(text.replace("{}", f"{place}/orders"))}, tmp_path, allowed)
        with pytest.raises(RequestError, match="may not name this place"):
            check_references({"source": orjson.loads(text.replace("{}", f"{place}/link"))}, tmp_path, allowed)


def test_relative_names_are_resolved_where_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the directory of the config, wherever the process runs."""
    folder, elsewhere = tmp_path / "feeds", tmp_path / "elsewhere"
    for place, password in ((folder, "right"), (elsewhere, "wrong")):
        place.mkdir()
        (place / "secret").write_text(f"mysql://u:{password}@h:3306\n")
    monkeypatch.chdir(elsewhere)
    config = config_of(TEXT.replace('"sqlite:////tmp/x"', '"file:secret"'), folder / "x.toml")
    assert config.target.uri == "mysql://u:right@h:3306"
    check_references({"target": {"uri": "file:secret"}}, folder, Api(files=[str(folder / "secret")]))
    with pytest.raises(RequestError):
        check_references({"target": {"uri": "file:secret"}}, folder, Api(files=[str(elsewhere / "secret")]))


@pytest.mark.parametrize("key", ["target.uri", "redis.uri", "source.kafka.security.protocol", "source.time-zone",
                                 "source.kafka.sasl.mechanism", "limits.window-bytes", "source.claim-check.locations",
                                 "filter.rules", "source.kafka.plugin.library.paths", "changefeed"])  # fmt: skip
def test_no_error_shows_what_a_reference_names(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it stands, and whichever way it is read: whole, by parts, in another case."""
    secret = "Root:x:0:0:~(!/Secret-Line"
    (tmp_path / "passwd").write_text(secret)
    monkeypatch.setenv("SOME_SECRET", secret)
    for reference in ("${SOME_SECRET}", "file:passwd"):
        values = copy.deepcopy(REQUIRED)
        values["source"]["kafka"] = {}
        head, _, rest = key.partition(".")
        value = [reference] if key.endswith(("locations", "rules")) else reference
        if key.startswith("source.kafka."):
            values["source"]["kafka"] = {key.removeprefix("source.kafka."): value}
        elif key.startswith("source.claim-check."):
            values["source"]["claim-check"] = {key.removeprefix("source.claim-check."): value}
        elif rest:
            values[head] = {**values.get(head, {}), rest: value}
        else:
            values[head] = value
        with pytest.raises(ConfigError) as caught:
            config_of(tomlkit.dumps(values), tmp_path / "x.toml")
        said = f"{caught.value} {caught.value.where} {caught.value.hint}".lower()
        assert all(part not in said for part in ("root:x", "secret-line", ":0:0")), said


def test_no_config_holds_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", "t" * 32)
    text = TEXT.replace("sqlite:////tmp/x", "mysql://u:${RECONCILER_TOKEN}@h:3306")
    with pytest.raises(ConfigError, match="token of the API"):
        config_of(text, tmp_path / "x.toml")


def test_a_line_of_a_rules_file_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    with pytest.raises(ConfigError) as caught:
        config_of(TEXT + '[filter]\nrules = ["@passwd"]\n', tmp_path / "x.toml")
    assert "root" not in f"{caught.value}".replace(str(tmp_path), "")
    assert "line 1" in str(caught.value.where)


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({"source": {"bootstrap-servers": "evil:9092"}}, True),
        ({"source": {"kafka": {"security.protocol": "SASL_PLAINTEXT"}}}, True),
        ({"source": {"kafka": {"sasl.oauthbearer.token.endpoint.url": "https://evil"}}}, True),
        ({"source": {"bootstrap-servers": "new:9092", "kafka": {"sasl.password": "new"}}}, True),
        ({"source": {"bootstrap-servers": "new:9092", "kafka": {"sasl.password": "n", "sasl.username": "m"}}}, False),
        ({"source": {"kafka": {"sasl.password": "new"}}}, False),
        ({"limits": {"writers": 1}}, False),
    ],
)
def test_a_login_stays_with_its_brokers(change: dict[str, Any], refused: bool) -> None:
    old = {"source": {"bootstrap-servers": "h:1", "kafka": {"sasl.password": "file:/x", "sasl.username": "u"}}}
    if refused:
        with pytest.raises(ConflictError, match="login stays"):
            check_destination(old, change)
    else:
        check_destination(old, change)


def test_what_is_shown() -> None:
    values = {
        "target": {"uri": "mysql://u:se@cr/et@h:3306?ssl-ca=/ca.pem&password=secret"},
        "redis": {"uri": "redis://:${PASSWORD}@h/0"},
        "source": {
            "bootstrap-servers": "h:1",
            "schema-registry": "https://u:secret@h:8081/x",
            "schema-registry-ca": "/ca.pem",
            "kafka": {
                "sasl.password": "secret",
                "sasl.username": "u",
                "ssl.key.password": "file:/run/secrets/x",
                "ssl.key.pem": "secret",
                "unknown": "secret",
            },
            "claim-check": {
                "options": dict.fromkeys(("account-key", "access-key", "sas-key", "service-account-key", "x"), "secret")
                | {"region": "eu"}
            },
        },
        "limits": {"writers": 2},
        "unknown": {"key": "secret", "number": 5},
    }
    hidden = dict.fromkeys(("account-key", "access-key", "sas-key", "service-account-key", "x"), "***")
    assert shown(values) == {
        "target": {"uri": "mysql://u:***@h:3306?ssl-ca=/ca.pem&password=***"},
        "redis": {"uri": "redis://:${PASSWORD}@h/0"},
        "source": {
            "bootstrap-servers": "h:1",
            "schema-registry": "https://u:***@h:8081/x",
            "schema-registry-ca": "/ca.pem",
            "kafka": {
                "sasl.password": "***",
                "sasl.username": "u",
                "ssl.key.password": "file:/run/secrets/x",
                "ssl.key.pem": "***",
                "unknown": "***",
            },
            "claim-check": {"options": {**hidden, "region": "eu"}},
        },
        "limits": {"writers": 2},
        "unknown": {"key": "***", "number": "***"},
    }


@pytest.mark.parametrize("password", ["a@b", "a/b@c", "a?b@c", "a#b@c", "a:b@", "${X}y", "@@", "p?x=y&z"])
def test_no_part_of_a_password_is_shown(password: str) -> None:
    for uri in (f"mysql://u:{password}@host:1", f"redis://:{password}@host/0"):
        assert "host" in (found := shown({"redis": {"uri": uri}})["redis"]["uri"])
        assert found.replace("host", "").replace("redis", "").replace("mysql", "").count("***") == 1
        assert password not in found


def test_of_a_lake_the_place_is_shown_and_no_login() -> None:
    uri = "iceberg+postgresql://lake:secret@h/d?warehouse=s3://b/p&sslmode=require"
    assert shown({"target": {"uri": uri}})["target"]["uri"] == uri.replace("secret", "***")
    wrong = shown({"target": {"uri": "iceberg+sqlite:////c?warehouse=s3://u:secret@b/p"}})["target"]["uri"]
    assert "secret" not in wrong


def test_of_every_key_it_is_known_whether_it_is_shown() -> None:
    hidden = {key for key in keys_of(Config) if shown(_nested(key, "x")) == _nested(key, HIDDEN)}
    assert hidden == URIS | {
        "source.kafka", "source.claim-check.map", "source.claim-check.options", "source.archive-options",
        "source.storage-options", "target.warehouse-options", "spark",
    }  # fmt: skip


def _nested(key: str, value: Any) -> dict[str, Any]:
    return reduce(lambda inner, name: {name: inner}, reversed(key.split(".")), value)
