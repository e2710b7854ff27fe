"""Processes that are forked from one that has read: a client's threads are not forked with it, so they connect anew."""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import closing

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


@pytest.fixture
def place(kafka_broker: KafkaBroker, topic_name: str) -> Partition:
    rows = [insert("d.t", n, id=n, v=n, s="x")._replace(topic=topic_name) for n in range(1, COUNT + 1)]
    produce(rows, kafka_broker.bootstrap, partitions=1)
    return Partition(topic_name, 0)


@pytest.fixture
def control(kafka_broker: KafkaBroker) -> Iterator[KafkaAdmin]:
    with closing(KafkaAdmin(kafka_broker.bootstrap, {})) as made:
        yield made


@pytest.fixture(params=["python", "core", "bounded"])
def reading(request: pytest.FixtureRequest, kafka_broker: KafkaBroker, control: KafkaAdmin) -> Iterator[Messages]:
    if request.param == "bounded":
        yield BoundedReader(control, 1 << 20)
        return
    settings = reader_settings(kafka_broker.bootstrap, {})
    with closing(RangeReader(settings, core=chosen(request.param == "core").core)) as made:
        yield made


def offsets(reading: Messages, place: Partition) -> list[int]:
    return [message.offset() for _, run in reading.read([(place, 0, COUNT)]) for message in run]


def does(act: Callable[[], bool]) -> bool:
    """Whether a forked process finds it true, and ends."""
    if (child := os.fork()) == 0:
        code = 2
        try:
            code = 0 if act() else 1
        finally:
            os._exit(code)
    ended = os.pidfd_open(child)
    try:
        if not select.select([ended], [], [], ENDS_WITHIN_S)[0]:
            os.kill(child, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        os.close(ended)


def test_a_process_that_is_forked_reads_by_itself(reading: Messages, place: Partition) -> None:
    everything = list(range(COUNT))
    for _ in range(2):
        assert offsets(reading, place) == everything
        assert does(lambda: offsets(reading, place) == everything)


def test_a_process_that_is_forked_closes_nothing_of_others(
    reading: Messages, control: KafkaAdmin, place: Partition
) -> None:
    runs = reading.read([(place, 0, COUNT)])
    assert next(runs)

    def closed() -> bool:
        control.close()
        if isinstance(reading, RangeReader):
            reading.close()
            del reading._client
        return True

    assert does(closed)
    list(runs)
    assert offsets(reading, place) == list(range(COUNT))
    assert control.ends([place]) == {place: COUNT}


def test_readers_that_are_kept_are_each_process_s_own(kafka_broker: KafkaBroker, place: Partition) -> None:
    settings = reader_settings(kafka_broker.bootstrap, {})
    kept = [KafkaReaders(settings), KafkaReaders(settings, native=True)]
    assert all(len(offsets(readers.get(), place)) == COUNT for readers in kept)

    def read_and_forgotten() -> bool:
        found = all(len(offsets(readers.get(), place)) == COUNT for readers in kept)
        kept[0].forget()
        return found

    assert does(read_and_forgotten)
    kept[0].forget()


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
