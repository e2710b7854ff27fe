"""Kafka's control plane, through kafka-python: which topics and partitions there are, where they begin and end."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.errors import (
    AuthorizationError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.consumer import IsolationLevel
from kafka.structs import OffsetAndMetadata

from consumer.kafka.admin_properties import control_arguments
from consumer.kafka.oauth import TokenEndpoint
from consumer.kafka.properties import Settings
from consumer.kafka.reach import unreachable
from consumer.kafka.reader import try_login
from consumer.kafka.requests import Fetched, begins, epochs_asked, fetched, first_gap
from consumer.kafka.topic_names import matcher
from ordering.errors import InputError, SourceError, SourceUnreachableError
from ordering.events import Partition

T = TypeVar("T")
_ABSENT = {error.errno for error in (UnknownTopicOrPartitionError, InvalidTopicError, TopicAuthorizationFailedError)}
"""What is said of a topic that is asked for by its name and that a list of all would leave out."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of the cluster: its id, which a topic created again does not share, and its partitions."""

    name: str
    id: str
    partitions: tuple[Partition, ...]


class End(NamedTuple):
    """Where what can be read of a partition ends, and its leader's epoch, where the broker reports one."""

    offset: int
    epoch: int | None = None


class KafkaAdmin:
    """Asks the cluster; raises SourceUnreachableError or SourceError."""

    def __init__(self, bootstrap: str, settings: Settings, timeout_ms: int = 10_000) -> None:
        self._bootstrap, self._settings = bootstrap, settings
        self._arguments = control_arguments(bootstrap, settings) | {"bootstrap_timeout_ms": timeout_ms}
        self._admin: Any = None
        self._process = os.getpid()

    def _call(self, ask: Callable[[Any], T]) -> T:
        self._join()
        try:
            if self._admin is None:
                self._refuse_silent()
                self._admin = KafkaAdminClient(**self._arguments)
            return ask(self._admin)
        except (SaslAuthenticationFailedError, AuthorizationError) as error:
            raise self._refused(str(error)) from error
        except (KafkaError, OSError, ValueError, RuntimeError) as error:
            # RuntimeError: a request met a connection that its broker had just closed (kafka.net.transport)
            self.close()
            raise self._unreachable(error) from error
        except BaseException:
            # a signal cut through it: the client may hold locks of its own for ever, and closing it would wait for them
            self._admin = None
            raise

    def _join(self) -> None:
        """Leave the connections to the process that made them, if this one was forked since: their thread is there."""
        if self._process != os.getpid():
            self._admin, self._process = None, os.getpid()

    def _refuse_silent(self) -> None:
        """Raise SourceUnreachableError while no broker can be connected to."""
        if fault := unreachable(self._bootstrap):
            hint = "check source.bootstrap-servers, and that Kafka runs and can be reached from here"
            raise SourceUnreachableError(f"Kafka is out of reach: {fault}", where=self._bootstrap, hint=hint)

    def _unreachable(self, error: Exception) -> SourceError:
        """Why there is no connection, as far as somebody says it."""
        tokens: TokenEndpoint | None = self._arguments.get("sasl_oauth_token_provider")
        if tokens is not None and tokens.refusal:
            return self._refused(tokens.refusal)
        fact = "a broker accepts connections but does not answer: it hangs, or only one side uses TLS, or another port"
        if not isinstance(error, KafkaTimeoutError):
            fact = str(error) or type(error).__name__
        if tokens is not None and tokens.silence:
            fact = tokens.silence
        else:
            login = try_login(self._bootstrap, self._settings)
            if login.is_refused:
                return self._refused(login.told)
            fact = login.told or fact
        hint = (
            "check source.bootstrap-servers, security.protocol and ssl.* in [source.kafka],"
            " and that the brokers' advertised addresses can be reached from here"
        )
        return SourceUnreachableError(f"Kafka is out of reach: {fact}", where=self._bootstrap, hint=hint)

    def _refused(self, reason: str) -> SourceError:
        hint = "check security.protocol, sasl.* and ssl.* in [source.kafka]"
        return SourceError(f"Kafka refuses us: {reason}", where=self._bootstrap, hint=hint)

    def close(self) -> None:
        """Close the connections."""
        self._join()
        if self._admin is not None:
            admin, self._admin = self._admin, None
            admin.close()

    def topics(self, names: Iterable[str]) -> list[Topic]:
        """The topics that are there, of the names or the one `~regular expression`; by name."""
        names = list(names)
        matches = matcher(names)
        # a cluster may have thousands of topics, and to read a list of them takes long
        asked = None if any(name.startswith("~") for name in names) else names
        found = self._call(lambda admin: admin.describe_topics(asked))
        there = (entry for entry in found if entry["error_code"] not in _ABSENT and not entry["is_internal"])
        wanted = [entry for entry in there if matches(entry["name"])]
        return [_topic(entry) for entry in sorted(wanted, key=lambda entry: str(entry["name"]))]

    def begins(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset that retention has left."""
        return self._offsets(partitions, OffsetSpec.EARLIEST)

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offset before which everything can be read: the next message's, or an open transaction's first."""
        return {p: end.offset for p, end in self.stable_ends(partitions).items()}

    def stable_ends(self, partitions: Iterable[Partition]) -> dict[Partition, End]:
        """As `ends`, with the epoch of the leader that says so."""
        found = self._listed(dict.fromkeys(partitions, OffsetSpec.LATEST))
        return {p: End(at.offset, at.leader_epoch) for p, at in found.items()}

    def written_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offset that the next message gets, whatever transactions are open."""
        found = self._listed(dict.fromkeys(partitions, OffsetSpec.LATEST), IsolationLevel.READ_UNCOMMITTED)
        return {p: at.offset for p, at in found.items()}

    def epoch_ends(self, epochs: Mapping[Partition, int]) -> dict[Partition, int | None]:
        """Up to which offset an epoch's leader wrote each partition; None: nobody knows the epoch (KIP-320)."""
        if not epochs:
            return {}
        asked = {TopicPartition(p.topic, p.partition): epoch for p, epoch in epochs.items()}
        found = self._call(lambda admin: admin._manager.run(epochs_asked, admin, asked))  # noqa: SLF001 no other way
        return {Partition(tp.topic, tp.partition): end for tp, end in found.items()}

    def _offsets(self, partitions: Iterable[Partition], spec: OffsetSpec) -> dict[Partition, int]:
        return {p: at.offset for p, at in self._listed(dict.fromkeys(partitions, spec)).items()}

    def _listed(
        self, specs: Mapping[Partition, int], isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    ) -> dict[Partition, Any]:
        asked = {TopicPartition(p.topic, p.partition): spec for p, spec in specs.items()}
        if not asked:
            return {}
        found = self._call(lambda admin: admin.list_partition_offsets(asked, isolation_level=isolation))
        return {Partition(tp.topic, tp.partition): at for tp, at in found.items()}

    def offsets_since(self, partitions: Iterable[Partition], ms: int) -> dict[Partition, int | None]:
        """The first offset whose message is at least as new as this (ms since 1970); None where there is none."""
        found = self._listed(dict.fromkeys(partitions, ms))
        return {p: at.offset if at.offset >= 0 else None for p, at in found.items()}

    def cleanup_policies(self, topics: Iterable[str]) -> dict[str, str]:
        """`cleanup.policy` of topics; left out where we may not see it."""
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic, ["cleanup.policy"]) for topic in topics]
        found = self._call(lambda admin: admin.describe_configs(asked, config_filter="all")).get("topic", {})
        return {topic: str(told["cleanup.policy"]["value"]) for topic, told in found.items() if told}

    def first_gap(self, partition: Partition, start: int, stop: int) -> int | None:
        """The first offset of [start, stop) from which on something was taken out of the log; None: nothing was."""
        place = TopicPartition(partition.topic, partition.partition)
        found: int | None = self._call(
            lambda admin: admin._manager.run(first_gap, admin, place, start, stop)  # noqa: SLF001 no other way
        )
        return found

    def batches(self, partition: Partition, start: int, stop: int) -> list[int]:
        """Where the batches begin that hold the offsets [start, stop), as a producer made them."""
        place = TopicPartition(partition.topic, partition.partition)
        found: list[int] = self._call(
            lambda admin: admin._manager.run(begins, admin, place, start, stop)  # noqa: SLF001 no other way
        )
        return found

    def fetched(self, starts: Mapping[Partition, int], size: int) -> dict[Partition, Fetched]:
        """See `consumer.kafka.requests.fetched`."""
        asked = {TopicPartition(p.topic, p.partition): offset for p, offset in starts.items()}
        found = self._call(lambda admin: admin._manager.run(fetched, admin, asked, size))  # noqa: SLF001 no other way
        return {Partition(tp.topic, tp.partition): given for tp, given in found.items()}

    def cluster_id(self) -> str:
        """The id of the Kafka cluster."""
        return str(self._call(lambda admin: admin.describe_cluster())["cluster_id"])

    def commit(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Commit a consumer group's offsets: for lag tools only, nothing here reads them back (R1)."""
        values = {TopicPartition(p.topic, p.partition): OffsetAndMetadata(o, "", -1) for p, o in offsets.items()}
        self._call(lambda admin: admin.alter_group_offsets(group, values))


def require(wanted: Iterable[str], found: Iterable[Topic], where: str) -> None:
    """Raise InputError for a named topic that is missing."""
    names = [name for name in wanted if not name.startswith("~")]
    missing = sorted(set(names) - {topic.name for topic in found})
    if missing:
        hint = "check source.topics against the changefeed's sink URI; TiCDC makes a topic when it first writes to it"
        raise InputError(f"topic missing: {', '.join(missing)}", where=f"Kafka at {where}", hint=hint)


def retired_ends(control: KafkaAdmin, topic: Topic) -> dict[int, int]:
    """Where the log of each partition ends, for a topic that is retired (`ordering.progress`)."""
    return {p.partition: end for p, end in control.written_ends(topic.partitions).items()}


def _topic(entry: Mapping[str, Any]) -> Topic:
    numbers = sorted(p["partition_index"] for p in entry["partitions"])
    return Topic(entry["name"], str(entry["topic_id"]), tuple(Partition(entry["name"], n) for n in numbers))
