"""A real Kafka broker: one node that is broker and controller (KRaft), on the pinned jars.

Formatting the storage takes a JVM and two seconds with Kafka's own tool. For one node with a fixed controller all
that the tool leaves is `meta.properties`, so it is written here; the first start does the rest.
"""

import base64
import uuid
from importlib.resources import as_file, files
from pathlib import Path
from typing import ClassVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from consumer.embedded.jars import jar_directory
from consumer.embedded.java import java_runtime
from consumer.embedded.ports import answers
from consumer.embedded.server import EmbeddedServer

_MESSAGE_BYTES = 64 * 1024 * 1024
_METADATA_SECONDS = 2.0
_FOREVER = str(2**63 - 1)

_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    # a topic appears because someone made it, never because someone looked for it
    "auto.create.topics.enable": "false",
    "message.max.bytes": str(_MESSAGE_BYTES),
    "replica.fetch.max.bytes": str(_MESSAGE_BYTES),
    # histories with old or future timestamps are neither deleted nor refused
    "log.retention.ms": "-1",
    "log.message.timestamp.after.max.ms": _FOREVER,
    # one node
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # after a crash the controller refuses the broker until its old session has run out: 9 s by default
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # quick and small
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}


class KafkaBroker(EmbeddedServer):
    """A broker at `bootstrap`; topics and messages outlive `stop`, `kill` and `restart`."""

    name: ClassVar[str] = "kafka"

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        heap: str = "512m",
        extra: dict[str, str] | None = None,
        *,
        lasting: bool = False,
    ) -> None:
        """`heap` is the JVM's limit; `extra` are broker settings that win over ours.

        `lasting`: Java compiles for speed. This doubles the CPU time of a start, so it is for measuring.
        """
        super().__init__(directory, port)
        self._controller_port = self._lease()
        self._heap = heap
        self._extra = dict(extra or {})
        self._compiled = () if lasting else ("-XX:TieredStopAtLevel=1",)

    @property
    def bootstrap(self) -> str:
        """The value of `bootstrap-servers`."""
        return f"127.0.0.1:{self.port}"

    def _command(self) -> list[str]:
        libraries = jar_directory("kafka")
        self._format()
        settings = self._write("server.properties", self._settings())
        with as_file(files(__package__) / "kafka-log4j2.properties") as packaged:
            logging = self._write_text("log4j2.properties", packaged.read_text())
        return [
            java_runtime().java,
            *("-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xms128m", f"-Xmx{self._heap}", *self._compiled),
            f"-Dlog4j2.configurationFile={logging.as_uri()}",
            *("-cp", f"{libraries}/*", "kafka.Kafka", str(settings)),
        ]

    def _ready(self) -> bool:
        if not answers(self.port):
            return False
        try:
            return bool(
                AdminClient({"bootstrap.servers": self.bootstrap}).list_topics(timeout=_METADATA_SECONDS).brokers
            )
        except KafkaException:  # listening but not serving yet: asked again until the start's limit
            return False

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _format(self) -> None:
        """Give the storage its identity, once: a cluster id of its own, as every new cluster has."""
        if not (self._data / "meta.properties").exists():
            self._data.mkdir(parents=True, exist_ok=True)
            identity = {"version": "1", "cluster.id": _new_id(), "node.id": "1", "directory.id": _new_id()}
            self._write("data/meta.properties", identity)

    def _settings(self) -> dict[str, str]:
        controller = f"127.0.0.1:{self._controller_port}"
        places = {
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(self._data),
        }
        return {**_SETTINGS, **places, **self._extra}

    def _write(self, name: str, properties: dict[str, str]) -> Path:
        return self._write_text(name, "".join(f"{key}={value}\n" for key, value in properties.items()))

    def _write_text(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        return path


def _new_id() -> str:
    """A Kafka Uuid: 16 random bytes in URL-safe base 64 without padding, never beginning with a dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text
