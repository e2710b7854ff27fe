"""`[source.kafka]`: client properties in librdkafka's (and mostly Java's) names, for both of our clients."""

from collections.abc import Mapping
from typing import Any

Settings = Mapping[str, str | int | bool]


def protocol(settings: Settings) -> str:
    """How brokers are spoken to, in capital letters."""
    return str(settings.get("security.protocol", "PLAINTEXT")).upper()


def mechanism(settings: Settings) -> str:
    """The way to log in; "" if none is named."""
    return str(settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "")))


def is_protected(settings: Settings) -> bool:
    """Whether a connection may be refused for what both sides have to show."""
    return protocol(settings) != "PLAINTEXT"


def reader_settings(bootstrap: str, settings: Settings) -> dict[str, Any]:
    """Properties of confluent-kafka's consumer, ours last: reading explicit ranges depends on them."""
    return {
        "client.id": "ticdc-reconciler",
        "fetch.wait.max.ms": 20,
        "fetch.queue.backoff.ms": 5,
        "fetch.message.max.bytes": 8 << 20,
        "fetch.max.bytes": 16 << 20,
        "queued.min.messages": 50_000,
        "queued.max.messages.kbytes": 64 << 10,
        "socket.keepalive.enable": True,
        "check.crcs": True,  # brokers leave that to whoever reads, and librdkafka's default is false
        **settings,
        "bootstrap.servers": bootstrap,
        "group.id": "ticdc-reconciler-reads-without-a-group",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "log_level": 0,
    }


def producer_settings(bootstrap: str, settings: Settings) -> dict[str, Any]:
    """Properties of confluent-kafka's producer: of the config those that say how to get in."""
    access = {k: v for k, v in settings.items() if k.startswith(("security.", "sasl.", "ssl."))}
    return {"client.id": "ticdc-reconciler", **access, "bootstrap.servers": bootstrap, "acks": "all", "log_level": 0}
