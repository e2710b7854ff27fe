"""`[source.kafka]`: client properties in librdkafka's (and mostly Java's) names, for both of our clients."""

from collections.abc import Mapping
from typing import Any

Settings = Mapping[str, str | int | bool]

OURS = frozenset({"bootstrap.servers", "group.id", "enable.auto.commit", "auto.offset.reset", "enable.partition.eof"})
"""Properties that reading explicit ranges depends on: `[source.kafka]` may not set them."""

_FOR_CONTROL = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "client.id": "client_id",
    "request.timeout.ms": "request_timeout_ms",
}
"""librdkafka's property -> kafka-python's argument."""


def control_arguments(bootstrap: str, settings: Settings) -> dict[str, Any]:
    """Arguments of kafka-python's clients. What only the data plane knows is left out."""
    found: dict[str, Any] = {_FOR_CONTROL[k]: v for k, v in settings.items() if k in _FOR_CONTROL}
    if settings.get("ssl.endpoint.identification.algorithm") == "none":
        found["ssl_check_hostname"] = False
    return {"bootstrap_servers": bootstrap.split(","), "client_id": "ticdc-reconciler", **found}


def reader_settings(bootstrap: str, settings: Settings) -> dict[str, Any]:
    """Properties of confluent-kafka's consumer, ours last: reading explicit ranges depends on them."""
    return {
        "client.id": "ticdc-reconciler",
        "fetch.wait.max.ms": 20,
        "fetch.queue.backoff.ms": 5,
        "fetch.message.max.bytes": 8 << 20,
        "queued.min.messages": 50_000,
        "queued.max.messages.kbytes": 64 << 10,
        "socket.keepalive.enable": True,
        **settings,
        "bootstrap.servers": bootstrap,
        "group.id": "ticdc-reconciler-reads-without-a-group",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "log_level": 0,
    }
