"""Brokers that ask who we are and show who they are: every way of Kafka's, with both of our clients.

One broker with a listener for each. SCRAM's users are made by the broker's own admin API; OAUTHBEARER's tokens come
from a tiny endpoint and are checked by the broker's validator of unsecured tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from pyspark import SparkContext

from consumer.config.model import config_from
from consumer.demo.fake_ticdc.producer import produce
from consumer.embedded import KafkaBroker
from consumer.embedded.ports import answers
from consumer.kafka.admin import KafkaAdmin
from consumer.kafka.properties import reader_settings
from consumer.kafka.reader import RangeReader
from ordering.errors import ConfigError, SourceError, SourceUnreachableError
from ordering.events import Partition
from tests.certificates import Authority, Certificate
from tests.service.cells import SqliteCells
from tests.service.lab import Feed
from tests.service.messages import at, begun
from tests.service.token_endpoint import SECRET as TOKEN_SECRET
from tests.service.token_endpoint import Endpoint, token_endpoint

pytestmark = [pytest.mark.service, pytest.mark.spark]
RIGHT, WRONG = "r1ght-Pa55", "wr0ng-Pa55"
USER = "rea,der=1"
"""SCRAM's own separators are in it."""
KEY_PASSWORD = "k3y-Pa55"
TOPIC = "locked"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_OAUTH = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    ' unsecuredLoginStringClaim_sub="x" unsecuredValidatorRequiredScope="kafka";'
)
_PROTOCOLS = {"open": "SASL_PLAINTEXT", "tls": "SSL", "mutual": "SSL", "login": "SASL_SSL"}
Settings = dict[str, Any]


@dataclass
class Locked:
    """The broker, what it shows, and the ways in."""

    broker: "LockedBroker"
    authority: Authority
    stranger: Authority
    client: Certificate
    tokens: Endpoint = field(default_factory=Endpoint)

    def place(self, listener: str, host: str = "localhost") -> str:
        return f"{host}:{self.broker.ports[listener]}"

    @property
    def tls(self) -> Settings:
        return {"security.protocol": "ssl", "ssl.ca.location": str(self.authority.file)}

    @property
    def mutual(self) -> Settings:
        shown = {"ssl.certificate.location": self.client.certificate, "ssl.key.location": self.client.key}
        return {**self.tls, **{k: str(v) for k, v in shown.items()}, "ssl.key.password": KEY_PASSWORD}

    def login(self, mechanism: str, password: str = RIGHT, user: str = USER) -> Settings:
        return {
            **self.tls,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }

    def bearer(self, secret: str = TOKEN_SECRET) -> Settings:
        return {**self.tls, "security.protocol": "SASL_SSL", **self.tokens.settings(secret)}


class LockedBroker(KafkaBroker):
    """A listener for each way in. The authority signs what it shows, for `localhost` only."""

    def __init__(self, directory: Path, authority: Authority) -> None:
        self.ports: dict[str, int] = {}
        super().__init__(directory)
        self.ports = {name: self._lease() for name in _PROTOCOLS}
        shown = authority.issue("broker", ["localhost"])
        places = {name: f"{name.upper()}://{{}}:{port}" for name, port in self.ports.items()}
        map_ = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT"} | {k.upper(): v for k, v in _PROTOCOLS.items()}
        self._extra = {
            "listeners": ",".join(
                [f"PLAINTEXT://{self.bootstrap}", f"CONTROLLER://127.0.0.1:{self._controller_port}"]
                + [place.format("127.0.0.1") for place in places.values()]
            ),
            "advertised.listeners": ",".join(
                [f"PLAINTEXT://{self.bootstrap}"] + [place.format("localhost") for place in places.values()]
            ),
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in map_.items()),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(shown.both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.file),
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.open.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.open.plain.sasl.jaas.config": f'{_PLAIN} user_reader="{RIGHT}";',
            "listener.name.login.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.login.plain.sasl.jaas.config": f'{_PLAIN} user_reader="{RIGHT}";',
            "listener.name.login.scram-sha-256.sasl.jaas.config": _SCRAM,
            "listener.name.login.scram-sha-512.sasl.jaas.config": _SCRAM,
            "listener.name.login.oauthbearer.sasl.jaas.config": _OAUTH,
        }

    def _ready(self) -> bool:
        return super()._ready() and all(answers(port) for port in self.ports.values())


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    place = tmp_path_factory.mktemp("locked")
    authority, stranger = Authority(place), Authority(place, "stranger")
    client = authority.issue("client", password=KEY_PASSWORD.encode())
    with LockedBroker(place / "broker", authority) as broker, token_endpoint() as tokens:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for kind in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            made = UserScramCredentialUpsertion(USER, ScramCredentialInfo(kind, 4096), RIGHT.encode())
            admin.alter_user_scram_credentials([made])[USER].result(30)
        produce([m._replace(topic=TOPIC) for m in begun()], broker.bootstrap, partitions=3)
        yield Locked(broker, authority, stranger, client, tokens)


WAYS = {
    "tls": ("tls", lambda locked: locked.tls),
    "tls-from-text": (
        "tls",
        lambda locked: {"security.protocol": "SSL", "ssl.ca.pem": locked.authority.file.read_text()},
    ),
    "mutual": ("mutual", lambda locked: locked.mutual),
    "mutual-from-text": (
        "mutual",
        lambda locked: {
            **locked.tls,
            "ssl.certificate.pem": locked.client.certificate.read_text(),
            "ssl.key.pem": locked.client.key.read_text(),
            "ssl.key.password": KEY_PASSWORD,
        },
    ),
    "plain": ("login", lambda locked: locked.login("PLAIN", user="reader")),
    "scram-256": ("login", lambda locked: locked.login("SCRAM-SHA-256")),
    "scram-512": ("login", lambda locked: locked.login("SCRAM-SHA-512")),
    "oauthbearer": ("login", lambda locked: locked.bearer()),
}


@pytest.mark.cells(by_turns=("way",))
@pytest.mark.parametrize("way", sorted(WAYS))
def test_a_run(locked: Locked, spark: SparkContext, tmp_path: Path, way: str) -> None:
    """Through both clients: the driver lists topics, tasks read them."""
    listener, settings = WAYS[way]
    cells = SqliteCells(tmp_path / "target")
    feed = Feed(spark, locked.place(listener), TOPIC, f"sqlite:///{tmp_path}/target", cells, tmp_path)
    feed.with_(source={"kafka": settings(locked)})
    assert feed.once().checkpoint_ts == at(3)
    assert len(cells.tables(["d"])["d.t"][1]) == 1


IN_CLEAR = {"security.protocol": "SASL_PLAINTEXT"}
REFUSED = {
    "another-authority": ("tls", lambda k: {**k.tls, "ssl.ca.location": str(k.stranger.file)}, "certificate"),
    "another-host": ("tls@127.0.0.1", lambda k: k.tls, "certificate"),
    "no-client-certificate": ("mutual", lambda k: k.tls, "certificate"),
    "wrong-plain": ("login", lambda k: k.login("PLAIN", WRONG, "reader"), "uthentication"),
    "wrong-scram": ("login", lambda k: k.login("SCRAM-SHA-512", WRONG), "uthentication"),
    "unknown-user": ("login", lambda k: k.login("SCRAM-SHA-256", user="nobody"), "uthentication"),
    "mechanism-that-is-off": (
        "open",
        lambda k: k.login("SCRAM-SHA-256") | {"security.protocol": "SASL_PLAINTEXT"},
        "PLAIN",
    ),
    "wrong-secret": ("login", lambda k: k.bearer(WRONG), "401"),
}


@pytest.mark.cells(by_turns=("case",))
@pytest.mark.parametrize("case", sorted(REFUSED))
def test_what_is_refused(locked: Locked, case: str) -> None:
    """At once, with exit code 3, without a secret, by both clients: only one may get that far."""
    listener, settings, told = REFUSED[case]
    name, _, host = listener.partition("@")
    place = locked.place(name, host or "localhost")
    found = settings(locked)
    # who gives out tokens may only be away, so the data plane tries again: it is the other one that says no
    for look in (_by_control,) if case == "wrong-secret" else (_by_control, _by_reader):
        with pytest.raises(SourceError) as caught:
            look(place, found)
        said = str(caught.value)
        assert not isinstance(caught.value, SourceUnreachableError), said
        assert caught.value.exit_code == 3
        assert told in said
        assert place in said
        assert not any(secret in said for secret in (RIGHT, WRONG, TOKEN_SECRET, KEY_PASSWORD))


def _by_control(place: str, settings: Settings) -> None:
    control = KafkaAdmin(place, settings, timeout_ms=1_000)
    try:
        control.topics([TOPIC])
    finally:
        control.close()


def _by_reader(place: str, settings: Settings) -> None:
    reader = RangeReader(reader_settings(place, settings))
    try:
        list(reader.read([(Partition(TOPIC, 0), 0, 1)]))
    finally:
        reader.close()


def test_tokens_are_kept_and_fetched_anew(locked: Locked) -> None:
    asked = len(locked.tokens.scopes)
    control = KafkaAdmin(locked.place("login"), locked.bearer())
    for _ in range(3):
        control.topics([TOPIC])
    control.close()
    assert locked.tokens.scopes[asked:] == ["kafka"]
    locked.tokens.scope = "other"
    try:
        with pytest.raises(SourceError, match="insufficient_scope") as caught:
            _by_control(locked.place("login"), locked.bearer())
    finally:
        locked.tokens.scope = "kafka"
    assert not isinstance(caught.value, SourceUnreachableError)


@pytest.mark.by_turns
def test_a_broker_without_encryption_is_told(locked: Locked) -> None:
    """Tried again, for a broker that is going down ends a handshake alike."""
    with pytest.raises(SourceUnreachableError, match="connecting to a PLAINTEXT broker listener"):
        _by_control(locked.place("open"), locked.tls)


def test_an_endpoint_that_is_down_is_tried_again(locked: Locked) -> None:
    locked.tokens.status = 503
    try:
        with pytest.raises(SourceUnreachableError, match=r"127\.0\.0\.1:\d+/token does not answer"):
            _by_control(locked.place("login"), locked.bearer())
    finally:
        locked.tokens.status = 200


@pytest.mark.by_turns
def test_a_wrong_password_as_users_meet_it(locked: Locked, spark: SparkContext, tmp_path: Path) -> None:
    target = tmp_path / "target"
    feed = Feed(spark, locked.place("open"), TOPIC, f"sqlite:///{target}", SqliteCells(target), tmp_path)
    names = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "reader"}
    feed.with_(**{"source.kafka": {**names, "sasl.password": WRONG}, "limits": {"retry-seconds": 300}})
    done = feed.command("check", str(feed.file()))
    said = done.stdout + done.stderr
    assert done.returncode == 3, said
    assert "Kafka refuses us" in said
    assert locked.place("open") in said
    assert "sasl" in said
    assert WRONG not in said
    assert "Traceback" not in said


def test_a_missing_file_is_named(locked: Locked, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.pem"):
        _by_control(locked.place("tls"), {**locked.tls, "ssl.ca.location": str(tmp_path / "none.pem")})


def test_a_key_under_another_password_is_no_question_on_the_terminal(locked: Locked) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.key\.password"):
        _by_control(locked.place("mutual"), {**locked.mutual, "ssl.key.password": WRONG})


WRONG_SETTINGS = {
    "login-without-protocol": ({"sasl.mechanism": "PLAIN", "sasl.password": WRONG}, "write SASL_SSL"),
    "login-over-tls-alone": ({"security.protocol": "SSL", "sasl.username": "u"}, "write SASL_SSL"),
    "tls-without-protocol": ({"ssl.ca.location": "/ca.pem"}, "write SSL"),
    "no-such-protocol": ({"security.protocol": "TLS"}, "'TLS'"),
    "no-such-mechanism": ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "'GSSAPI'"),
    "no-mechanism": ({"security.protocol": "SASL_SSL", "sasl.username": "u", "sasl.password": WRONG}, "sasl.mechanism"),
    "no-password": (
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u"},
        "lacks sasl.password",
    ),
    "certificate-without-key": ({"security.protocol": "SSL", "ssl.certificate.location": "/c"}, "ssl.key.location"),
    "one-client-only": ({"security.protocol": "SSL", "ssl.keystore.location": "/k"}, "ssl.keystore.location"),
    "no-such-check": (
        {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "off"},
        "ssl.endpoint.identification.algorithm 'off'",
    ),
    "another-kind-of-address": (
        {
            **Endpoint("file:///etc/passwd").settings(),
            "security.protocol": "SASL_SSL",
        },
        "no http:// or https://",
    ),
}


@pytest.mark.parametrize("case", sorted(WRONG_SETTINGS))
def test_settings_that_would_protect_less_than_they_say(case: str) -> None:
    settings, told = WRONG_SETTINGS[case]
    values = {
        "changefeed": "x",
        "source": {"bootstrap-servers": "x", "topics": ["x"], "kafka": settings},
        "target": {"uri": "sqlite:///x"},
    }
    with pytest.raises(ConfigError) as caught:
        config_from(values, "x")
    assert told in str(caught.value)
    assert WRONG not in str(caught.value)
