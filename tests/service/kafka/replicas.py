"""Three brokers that replicate through proxies: followers lag for as long as a test wants, and everybody answers.

A proxy holds back what a leader answers to its followers, and nothing else: clients and the controller go past it. The
controller is the first broker, which is neither broken nor frozen, and where everybody asks for the cluster.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from consumer.embedded import KafkaBroker
from tests.service.kafka.brokers import joining
from tests.service.lab import eventually
from tests.service.proxy import Proxy

STRICT, LENIENT = 2, 3
"""Leaders: one puts followers that lag for a second out of the in-sync replicas, the other never does."""
_LAG_MS = {STRICT: "1000"}
_NEVER_MS = "600000"
FOLLOWER = 1
"""Where the tests' followers are; it leads nothing that the cluster's own topics don't bring along."""


def rack(node: int) -> str:
    """Where a broker stands: who says so with `client.rack` reads from it, leader or not (KIP-392)."""
    return f"rack-{node}"


@dataclass
class Cluster:
    """The brokers, and the way from each to its followers, by their numbers."""

    brokers: dict[int, KafkaBroker]
    ways: dict[int, Proxy]

    @property
    def bootstrap(self) -> str:
        return self.brokers[1].bootstrap

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap})

    def make_topic(self, topic: str, *nodes: int, partitions: int = 1, **settings: str) -> None:
        """A topic whose partitions lie on these brokers; the first one leads them."""
        config = {name.replace("_", "."): value for name, value in settings.items()}
        made = NewTopic(topic, partitions, replica_assignment=[list(nodes)] * partitions, config=config)
        self.admin.create_topics([made])[topic].result(30)
        self.until_in_sync(topic, *nodes)

    def until_in_sync(self, topic: str, *nodes: int) -> None:
        """Wait until exactly these are the in-sync replicas of each partition."""
        eventually(f"in sync: {nodes}", lambda: all(set(isr) == set(nodes) for _, isr in self._state(topic)))

    def until_led_by(self, topic: str, node: int) -> None:
        """Wait until a broker leads each partition."""
        eventually(f"led by {node}", lambda: all(leader == node for leader, _ in self._state(topic)))

    def _state(self, topic: str) -> Iterable[tuple[int, list[int]]]:
        told = self.admin.list_topics(topic, timeout=10).topics[topic].partitions.values()
        return [(one.leader, one.isrs) for one in told] or [(-1, [])]

    def lose_the_leader(self, topic: str, node: int, successor: int) -> None:
        """Kill a topic's leader, and what its followers have not got yet with it, until another one leads."""
        self.brokers[node].kill()
        self.ways[node].cut()
        self.until_led_by(topic, successor)
        self.ways[node].release()

    def restored(self) -> None:
        """Let everything go on."""
        for node, broker in self.brokers.items():
            self.ways[node].release()
            broker.start()  # if it was killed


@contextmanager
def cluster_at(place: Path) -> Iterator[Cluster]:
    """The cluster, running."""
    with ExitStack() as running:
        ways = {node: running.enter_context(Proxy("127.0.0.1", 0)) for node in (1, STRICT, LENIENT)}
        first = _replicating(KafkaBroker(place / "1"), 1, ways[1])
        brokers = {1: running.enter_context(first)}
        for node in (STRICT, LENIENT):
            brokers[node] = _replicating(joining(first, place / str(node), node), node, ways[node])
            running.callback(brokers[node].close)
        with ThreadPoolExecutor() as pool:
            list(pool.map(KafkaBroker.start, brokers.values()))
        yield Cluster(brokers, ways)


def _replicating(broker: KafkaBroker, node: int, way: Proxy) -> KafkaBroker:
    """The same broker, not started yet, whose followers come by way of a proxy."""
    way.to = ("127.0.0.1", broker._lease())
    here = f"PLAINTEXT://{broker.bootstrap}"
    listeners = [here, f"REPLICATION://127.0.0.1:{way.to[1]}"]
    if node == 1:
        listeners.append(f"CONTROLLER://127.0.0.1:{broker._controller_port}")
    protocols = ("CONTROLLER", "PLAINTEXT", "REPLICATION")
    broker._extra |= {
        "listeners": ",".join(listeners),
        "advertised.listeners": f"{here},REPLICATION://127.0.0.1:{way.port}",
        "inter.broker.listener.name": "REPLICATION",
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in protocols),
        "broker.rack": rack(node),
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "replica.lag.time.max.ms": _LAG_MS.get(node, _NEVER_MS),
        "replica.fetch.backoff.ms": "100",
    }
    return broker
