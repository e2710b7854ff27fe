"""More brokers for a cluster whose only controller is its first one."""

import base64
import uuid
from pathlib import Path

from consumer.embedded import KafkaBroker


def _properties(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)


def joining(first: KafkaBroker, directory: Path, node: int, **settings: str) -> KafkaBroker:
    """A broker that joins the cluster of the first one, by its number in the cluster. Not started yet."""
    cluster = _properties(first.directory / "data" / "meta.properties")["cluster.id"]
    controller = _properties(first.directory / "server.properties")["controller.quorum.voters"]
    directory_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "a")
    (directory / "data").mkdir(parents=True)
    identity = {"version": "1", "cluster.id": cluster, "node.id": str(node), "directory.id": directory_id}
    lines = "".join(f"{name}={value}\n" for name, value in identity.items())
    (directory / "data" / "meta.properties").write_text(lines)
    extra = {"process.roles": "broker", "node.id": str(node), "controller.quorum.voters": controller, **settings}
    broker = KafkaBroker(directory, extra=extra)
    extra["listeners"] = f"PLAINTEXT://{broker.bootstrap}"
    broker._extra.update(extra)
    return broker
