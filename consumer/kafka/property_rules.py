"""Which properties `[source.kafka]` may hold.

Whatever protects the connection has to mean the same to both of our clients, or it is refused: a property that only one
of them follows would leave the other's connection open. Facts of the properties: librdkafka's CONFIGURATION.md.
"""

from urllib.parse import urlsplit

from consumer.kafka.properties import Settings, mechanism, protocol
from sinks.wording import meant

OURS = frozenset({
    "bootstrap.servers", "group.id", "enable.auto.commit", "auto.offset.reset", "enable.partition.eof",
    "isolation.level",
})  # fmt: skip
"""Properties that reading explicit ranges depends on: `[source.kafka]` may not set them."""

_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_TLS = frozenset({
    "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location",
    "ssl.key.pem", "ssl.key.password", "ssl.crl.location", "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification",
})  # fmt: skip
_TOKENS = frozenset({
    "sasl.oauthbearer.method", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.scope", "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.extensions",
    "https.ca.location", "https.ca.pem",
})  # fmt: skip
_LOGIN = frozenset({"sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"})
_TUNING = frozenset({
    "security.protocol", "client.id", "client.rack", "client.dns.lookup", "broker.address.family", "broker.address.ttl",
    "api.version.request.timeout.ms", "check.crcs", "connections.max.idle.ms", "fetch.error.backoff.ms",
    "fetch.max.bytes", "fetch.message.max.bytes", "fetch.min.bytes", "fetch.queue.backoff.ms", "fetch.wait.max.ms",
    "max.in.flight", "max.in.flight.requests.per.connection", "max.partition.fetch.bytes", "message.max.bytes",
    "metadata.max.age.ms", "metadata.recovery.strategy", "queued.max.messages.kbytes", "queued.min.messages",
    "receive.message.max.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "request.timeout.ms",
    "retry.backoff.max.ms", "retry.backoff.ms", "socket.connection.setup.timeout.ms", "socket.keepalive.enable",
    "socket.max.fails", "socket.nagle.disable", "socket.receive.buffer.bytes", "socket.send.buffer.bytes",
    "socket.timeout.ms", "topic.metadata.refresh.interval.ms",
})  # fmt: skip
"""What only makes reading slower or faster. Others are refused: some load a library or run a command."""


_ENDPOINT = frozenset({f"sasl.oauthbearer.{name}" for name in ("token.endpoint.url", "client.id", "client.secret")})
_METHOD, _URL = "sasl.oauthbearer.method", "sasl.oauthbearer.token.endpoint.url"


def faults(settings: Settings) -> list[str]:
    """What is wrong with the properties, each worth a line for the user; nothing connects."""
    return [*_unknown(settings), *(_incomplete(settings) if not _unknown(settings) else [])]


def _unknown(settings: Settings) -> list[str]:
    found = [f"may not set {name}: the reconciler sets it itself" for name in sorted(OURS & settings.keys())]
    foreign = sorted(settings.keys() - OURS - _TLS - _TOKENS - _LOGIN - _TUNING)
    known = sorted(_TLS | _LOGIN | _TOKENS | _TUNING)
    found += [f"has {name}, which is not supported; {meant(name, known)}" for name in foreign]
    if protocol(settings) not in _PROTOCOLS:
        found.append(f"has no security.protocol {settings['security.protocol']!r}; known are {', '.join(_PROTOCOLS)}")
    if mechanism(settings) not in ("", *_MECHANISMS):
        found.append(f"has no sasl.mechanism {mechanism(settings)!r}; known are {', '.join(_MECHANISMS)}")
    for name, allowed in (("ssl.endpoint.identification.algorithm", ("https", "none")), (_METHOD, ("oidc",))):
        if settings.get(name, allowed[0]) not in allowed:
            found.append(f"has no {name} {settings[name]!r}; known are {', '.join(allowed)}")
    if str(settings.get("check.crcs", True)).lower() not in ("true", "t", "1"):
        found.append("has check.crcs = false: what a disk or a network has damaged would become rows")
    if not _is_address(str(settings.get(_URL, "https://host"))):
        found.append(f"has a {_URL} that is no http:// or https:// address")
    return found


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _incomplete(settings: Settings) -> list[str]:
    """What is set in vain, and what is missing: neither client would say so before it connects unprotected."""
    named, how = protocol(settings), mechanism(settings)
    found = []
    for prefix, word in (("ssl.", "SSL"), ("sasl.", "SASL")):
        in_vain = [name for name in settings if name.startswith(prefix)]
        if in_vain and word not in named:
            found.append(f"has {in_vain[0]}, but security.protocol is {named}: write {_fitting(settings)}")
    by_mechanism = {"OAUTHBEARER": {_METHOD, *_ENDPOINT}, "": {"sasl.mechanism"}}
    needed = by_mechanism.get(how, {"sasl.username", "sasl.password"}) if "SASL" in named else set()
    found += [f"lacks {name}, which {named} {how} needs" for name in sorted(needed - settings.keys())]
    for kind in ("location", "pem"):
        pair = {f"ssl.certificate.{kind}", f"ssl.key.{kind}"}
        found += [f"lacks {name}" for name in sorted(pair - settings.keys()) if pair & settings.keys()]
    return found


def _fitting(settings: Settings) -> str:
    login = any(name.startswith("sasl.") for name in settings)
    return "SASL_SSL" if login else "SSL"
