"""Prometheus metrics: made from what is in memory at the moment they are asked for, so nothing outlives its changefeed.

Names and units follow Prometheus's conventions: base units, `_total` for what only grows. Counters begin with the
changefeed, not with the process: they are kept in the target.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from consumer.proof.report import ProofVerdict
from consumer.serve.api.models import Status
from consumer.serve.changefeed import Feed
from consumer.serve.fleet import Fleet
from consumer.serve.observed.run_recorder import BUCKETS_S
from consumer.serve.status import STATES, status_of

_PREFIX = "ticdc_reconciler_"
_COUNTERS = {
    "events": ("Row messages read, repetitions included.", "events"),
    "duplicates": ("Repetitions dropped.", "duplicates"),
    "duplicates_unproven": ("Repetitions dropped that the ledger could not prove.", "duplicates_unproven"),
    "late_events": ("Late events that stopped the changefeed since the process began.", "late"),
    "filtered": ("Row messages that event filters left out.", "filtered"),
    "quarantined": ("Quarantined messages, whatever became of them since.", "quarantined"),
    "ddls": ("DDLs passed: executed, left out or ignored.", "ddls"),
    "rows_written": ("Rows deleted or written in the target.", "rows_written"),
    "windows": ("Windows applied.", "windows"),
}
_PARTITION_GAUGES = {
    "partition_offset": ("Offset from which reading goes on; what lies before is applied.", "offset"),
    "partition_end_offset": ("End of the partition.", "end_offset"),
    "partition_begin_offset": ("Oldest offset that Kafka still has.", "begin_offset"),
    "partition_unread_messages": ("Messages in Kafka that are not applied.", "unread"),
    "partition_watermark_still_seconds": (
        "So long the watermark has not risen, as this process saw it.",
        "still_seconds",
    ),
    "partition_stalled": ("1: it holds the others back and has stood still for limits.stalled-seconds.", "stalled"),
}


def metrics_router(fleet: Fleet) -> APIRouter:
    """GET /metrics."""
    registry = CollectorRegistry()
    registry.register(FleetCollector(fleet))
    ProcessCollector(registry=registry)
    router = APIRouter(tags=["metrics"])
    page = SharedPage(lambda: generate_latest(registry))

    @router.get(
        "/metrics", operation_id="metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}}
    )
    async def metrics() -> Response:
        """Prometheus's text format."""
        return Response(await page.text(), media_type=CONTENT_TYPE_LATEST)

    return router


class SharedPage:
    """A text that takes a second to make where there are ten thousand partitions: all who ask meanwhile get the same.

    It is made in a thread, so that health and all else are answered meanwhile.
    """

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make
        self._under_way: asyncio.Future[bytes] | None = None

    async def text(self) -> bytes:
        """The text, of now or of a moment ago."""
        if self._under_way is None or self._under_way.done():
            self._under_way = asyncio.ensure_future(asyncio.to_thread(self._make))
        return await asyncio.shield(self._under_way)


class FleetCollector(Collector):
    """Every metric of every changefeed, as it is now."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def describe(self) -> Iterable[Metric]:
        """Nothing ahead: names do not clash with the process's own."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all families."""
        told = [(feed, status_of(feed)) for feed in self._fleet.all()]
        statuses = [status for _, status in told]
        yield InfoMetricFamily(_PREFIX + "build", "The program.", {"version": version("ticdc-reconciler")})
        yield _states(statuses)
        yield from _counters(statuses)
        yield _drift(statuses)
        yield from _proof(statuses)
        yield from _gauges(statuses)
        yield from _of_partitions(statuses)
        yield _by_state("quarantine_messages", "Quarantined messages, by state.", [(s, s.quarantine) for s in statuses])
        yield _by_state("ddl_log_entries", "The latest DDLs of the log, by state.", [(s, _ddls(s)) for s in statuses])
        yield _durations([feed for feed, _ in told])


def _states(statuses: list[Status]) -> Metric:
    family = GaugeMetricFamily(
        _PREFIX + "changefeed_state", "1 for the state it is in.", labels=["changefeed", "state"]
    )
    for status in statuses:
        for state in STATES:
            family.add_metric([status.changefeed, state], float(status.state == state))
    return family


def _counters(statuses: list[Status]) -> Iterator[Metric]:
    for name, (about, key) in _COUNTERS.items():
        family = CounterMetricFamily(_PREFIX + name, about, labels=["changefeed"])
        for status in statuses:
            family.add_metric([status.changefeed], getattr(status, key))
        yield family


def _drift(statuses: list[Status]) -> Metric:
    about = "Rows that the target lacked, or held, other than the events say."
    family = CounterMetricFamily(_PREFIX + "drift_rows", about, labels=["changefeed", "kind"])
    for status in statuses:
        for kind in ("missing", "unexpected"):
            family.add_metric([status.changefeed, kind], sum(getattr(one, kind) for one in status.drift))
    return family


def _proof(statuses: list[Status]) -> Iterator[Metric]:
    tables = GaugeMetricFamily(
        _PREFIX + "proof_tables", "Tables by what their last proof has found.", labels=["changefeed", "verdict"]
    )
    oldest = GaugeMetricFamily(
        _PREFIX + "proof_oldest_timestamp_seconds",
        "Checkpoint of the comparison that is longest ago, of all tables that were compared, since 1970.",
        labels=["changefeed"],
    )
    for status in statuses:
        for verdict in ProofVerdict:
            found = sum(one.verdict == verdict.value for one in status.proof)
            tables.add_metric([status.changefeed, verdict.value], found)
        compared = [one.checkpoint_ts for one in status.proof if one.verdict != ProofVerdict.UNPROVEN.value]
        if compared:
            oldest.add_metric([status.changefeed], (min(compared) >> 18) / 1000)
    yield from (tables, oldest)


def _gauges(statuses: list[Status]) -> Iterator[Metric]:
    values: dict[str, tuple[str, Callable[[Status], float | None]]] = {
        "leader": ("1: this process leads the changefeed.", lambda s: float(s.leads)),
        "stand_bys": ("Instances that stand by.", lambda s: float(len(s.stand_bys))),
        "checkpoint_timestamp_seconds": (
            "Commit time up to which everything is in the target, since 1970.",
            lambda s: (s.checkpoint_ts >> 18) / 1000,
        ),
        "reads_archive": ("1: the archive is read instead of the topics.", lambda s: float(bool(s.archived))),
        "lag_seconds": ("Checkpoint behind this machine's clock.", lambda s: s.lag_now_seconds),
        "watermark_lag_seconds": ("Checkpoint behind the global resolvedTs.", lambda s: s.source.lag_seconds),
        "stalled_partitions": (
            "Partitions that hold back and stand still for limits.stalled-seconds.",
            lambda s: float(sum(p.stalled for p in s.source.partitions)),
        ),
        "ledger_up": ("1: Redis answered last.", _ledger_up),
    }
    for name, (about, value) in values.items():
        family = GaugeMetricFamily(_PREFIX + name, about, labels=["changefeed"])
        for status in statuses:
            found = value(status)
            if found is not None:
                family.add_metric([status.changefeed], found)
        yield family


def _ledger_up(status: Status) -> float | None:
    return None if status.ledger.state == "unknown" else float(status.ledger.running)


def _of_partitions(statuses: list[Status]) -> Iterator[Metric]:
    labels = ["changefeed", "topic", "partition"]
    distance = GaugeMetricFamily(
        _PREFIX + "partition_retention_distance_messages",
        "Messages between the oldest that Kafka has and the next to read; at 0 retention deletes what is not applied.",
        labels=labels,
    )
    families = {
        key: GaugeMetricFamily(_PREFIX + name, about, labels=labels) for name, (about, key) in _PARTITION_GAUGES.items()
    }
    for status in statuses:
        for found in status.source.partitions:
            place = [status.changefeed, found.topic, str(found.partition)]
            for key, family in families.items():
                family.add_metric(place, float(getattr(found, key)))
            distance.add_metric(place, found.offset - found.begin_offset)
    yield from families.values()
    yield distance


def _by_state(name: str, about: str, found: list[tuple[Status, dict[str, int]]]) -> Metric:
    family = GaugeMetricFamily(_PREFIX + name, about, labels=["changefeed", "state"])
    for status, counts in found:
        for state, count in counts.items():
            family.add_metric([status.changefeed, state], count)
    return family


def _ddls(status: Status) -> dict[str, int]:
    counts: dict[str, int] = {}
    for line in status.ddl_history:
        counts[line.state] = counts.get(line.state, 0) + 1
    return counts


def _durations(feeds: list[Feed]) -> Metric:
    family = HistogramMetricFamily(
        _PREFIX + "window_duration_seconds", "How long windows took, from probe to commit.", labels=["changefeed"]
    )
    for feed in feeds:
        durations, below = feed.watching.durations, 0
        buckets = []
        for bound, count in zip([*map(str, BUCKETS_S), "+Inf"], list(durations.counts), strict=True):
            below += count
            buckets.append((bound, float(below)))
        family.add_metric([feed.name], buckets, durations.sum_s)
    return family
