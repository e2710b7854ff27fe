"""Processes that are forked from one that has read: a client's threads are not forked with it, so they connect anew."""

import os
import select
import signal
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import closing, contextmanager
from multiprocessing import get_context

import pytest

from consumer.demo.fake_ticdc.producer import produce
from consumer.embedded import KafkaBroker
from consumer.filters.tables import table_filter
from consumer.kafka.admin import KafkaAdmin
from consumer.kafka.bounded_reader import BoundedReader
from consumer.kafka.properties import reader_settings
from consumer.kafka.reader import KafkaReaders, Messages, RangeReader
from consumer.native import chosen
from consumer.native.kafka_client import CoreConsumer
from consumer.tasks.order import ReadTask
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import Report
from ordering.events import Partition
from ordering.timestamps import MAX_TSO, CheckpointTs, ResolvedTs
from ordering.window import Range, Window
from tests.service.messages import insert

pytestmark = pytest.mark.service
COUNT = 30
ENDS_WITHIN_S = 180.0
KINDS = ["python", "core", "bounded"]


@pytest.fixture
def place(kafka_broker: KafkaBroker, topic_name: str) -> Partition:
    rows = [insert("d.t", n, id=n, v=n, s="x")._replace(topic=topic_name) for n in range(1, COUNT + 1)]
    produce(rows, kafka_broker.bootstrap, partitions=1)
    return Partition(topic_name, 0)


@contextmanager
def reading(kind: str, bootstrap: str) -> Iterator[tuple[Messages, KafkaAdmin]]:
    """What reads, and the control plane beside it."""
    with closing(KafkaAdmin(bootstrap, {})) as control:
        if kind == "bounded":
            yield BoundedReader(control, 1 << 20), control
            return
        settings = reader_settings(bootstrap, {})
        with closing(RangeReader(settings, core=chosen(kind == "core").core)) as made:
            yield made, control


def offsets(reader: Messages, place: Partition) -> list[int]:
    return [message.offset() for _, run in reader.read([(place, 0, COUNT)]) for message in run]


def does(act: Callable[[], bool]) -> bool:
    """Whether a forked process finds it true, and ends."""
    if (child := os.fork()) == 0:
        code = 2
        try:
            code = 0 if act() else 1
        except BaseException:  # noqa: BLE001 whatever it is, the test's output says it
            traceback.print_exc()
        finally:
            os._exit(code)
    ended = os.pidfd_open(child)
    try:
        if not select.select([ended], [], [], ENDS_WITHIN_S)[0]:
            os.kill(child, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        os.close(ended)


@pytest.fixture(scope="module")
def alone() -> Iterator[Executor]:
    """A process without clients of other tests.

    A client's thread that looks up a name at the moment of a fork leaves libc's lock closed in the new process. Clients
    that look for brokers which are gone do so all the time.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as made:
        yield made


def reads_by_itself(kind: str, bootstrap: str, place: Partition) -> None:
    everything = list(range(COUNT))
    with reading(kind, bootstrap) as (reader, _):
        for _ in range(2):
            assert offsets(reader, place) == everything
            assert does(lambda: offsets(reader, place) == everything)


def closes_nothing_of_others(kind: str, bootstrap: str, place: Partition) -> None:
    with reading(kind, bootstrap) as (reader, control):
        runs = reader.read([(place, 0, COUNT)])
        assert next(runs)

        def closed() -> bool:
            control.close()
            if isinstance(reader, RangeReader):
                reader.close()
                del reader._client
            return True

        assert does(closed)
        list(runs)
        assert offsets(reader, place) == list(range(COUNT))
        assert control.ends([place]) == {place: COUNT}


def keeps_its_own(bootstrap: str, place: Partition) -> None:
    settings = reader_settings(bootstrap, {})
    kept = [KafkaReaders(settings), KafkaReaders(settings, native=True)]
    assert all(len(offsets(readers.get(), place)) == COUNT for readers in kept)

    def read_and_forgotten() -> bool:
        found = all(len(offsets(readers.get(), place)) == COUNT for readers in kept)
        kept[0].forget()
        return found

    assert does(read_and_forgotten)
    kept[0].forget()


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_is_forked_reads_by_itself(
    kind: str, alone: Executor, kafka_broker: KafkaBroker, place: Partition
) -> None:
    alone.submit(reads_by_itself, kind, kafka_broker.bootstrap, place).result(2 * ENDS_WITHIN_S)


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_is_forked_closes_nothing_of_others(
    kind: str, alone: Executor, kafka_broker: KafkaBroker, place: Partition
) -> None:
    alone.submit(closes_nothing_of_others, kind, kafka_broker.bootstrap, place).result(2 * ENDS_WITHIN_S)


def test_readers_that_are_kept_are_each_process_s_own(
    alone: Executor, kafka_broker: KafkaBroker, place: Partition
) -> None:
    alone.submit(keeps_its_own, kafka_broker.bootstrap, place).result(2 * ENDS_WITHIN_S)


def test_a_client_that_the_core_can_t_use_is_told(kafka_broker: KafkaBroker, place: Partition) -> None:
    """What Python's client takes and the core's refuses, as a callback, makes tasks slower: their reports say so."""
    everything = Range(place, 0, COUNT, 0)
    window = Window(CheckpointTs(0), CheckpointTs(0), ResolvedTs(MAX_TSO), ResolvedTs(MAX_TSO), (everything,))
    spec = ReadSpec(window, {}, table_filter(["d.*"]), 1, 1 << 20, native=True)
    for more, told in (({}, ""), ({"stats_cb": print}, "messages come through Python: builtin_function_or_method")):
        readers = KafkaReaders(reader_settings(kafka_broker.bootstrap, more), native=True)
        found = [one for _, one in ReadTask(spec, readers)([(0, (everything,))]) if isinstance(one, Report)]
        assert [(report.events, report.without_core) for report in found] == [(COUNT, told)]
        assert isinstance(readers.get()._consumer, CoreConsumer) == (not told)
        readers.forget()
