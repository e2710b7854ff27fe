"""The past of a changefeed in samples: an hour of them in memory, a day and thirty days of coarser ones also in a file.

    every 2 s        the last hour, in memory only
    every minute     the last day
    every 15 minutes the last thirty days

A coarse sample has the totals at its end and the highest lags within. Each minute is appended to the file as a record
of one size; what is older than a day is thinned when the file is read, or rewritten because it has grown. So memory
and file are bounded: 4,320 records, and at most as many again before the file is rewritten. It is no source of
truth: a file that can't be read or written costs the past, and nothing else.
"""

import math
import struct
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import structlog

from consumer.serve.api.models import Status, StatusSample
from sinks.private_files import make_directory, open_file

EVERY_S = 2.0
"""Between two samples."""
MINUTE_S: Final = 60
QUARTER_S: Final = 900
_KEPT: Final = {int(EVERY_S): 1800, MINUTE_S: 1440, QUARTER_S: 2880}
"""Seconds between two samples -> how many are kept."""
_RECORD = struct.Struct("<d6q2d2Q")
_MOST_BYTES = 2 * _RECORD.size * (_KEPT[MINUTE_S] + _KEPT[QUARTER_S])
_LAST_TSO = 2**63 - 1
log = structlog.get_logger()


def now() -> float:
    """Seconds since 1970, to the millisecond: the wall clock, for people and charts; nothing is decided by it."""
    return round(time.time(), 3)


class Ring:
    """Samples of one changefeed. One thread adds, any may read. `file`: where coarse ones outlive the process."""

    def __init__(self, file: Path | None = None) -> None:
        self._kept = {step: deque[StatusSample](maxlen=most) for step, most in _KEPT.items()}
        self._file, self._is_told = file, False
        if file is not None:
            found = list(_read(file, now()))
            for sample in found:
                self._coarse(sample)
            if found:
                self._write()

    def add(self, status: Status) -> None:
        """Keep how it is now."""
        sample = sample_of(status, now())
        for kept in self._kept.values():
            while kept and kept[-1].at > sample.at:
                kept.pop()  # the clock was set back: else nothing would be kept until that moment comes
        self._kept[int(EVERY_S)].append(sample)
        if self._coarse(sample):
            self._append(self._kept[MINUTE_S][-2])

    def since(self, at: float, step: int = int(EVERY_S)) -> list[StatusSample]:
        """The samples of a step after a moment, oldest first."""
        found = []
        for sample in reversed(list(self._kept[step])):
            if sample.at <= at:
                break
            found.append(sample)
        return found[::-1]

    def keep(self) -> None:
        """The process ends: write the minute that has not ended."""
        if self._kept[MINUTE_S]:
            self._append(self._kept[MINUTE_S][-1])

    def forget(self) -> None:
        """Its changefeed is deleted: remove the file."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)
            self._file = None

    def _coarse(self, sample: StatusSample) -> bool:
        """Take it into the coarser steps; whether a minute has ended by it."""
        return [_taken(self._kept[step], sample, step) for step in (QUARTER_S, MINUTE_S)][-1]

    def _append(self, sample: StatusSample) -> None:
        if self._file is None:
            return
        try:
            _write(self._file, "ab", _packed(sample))
            grown = self._file.stat().st_size > _MOST_BYTES
        except OSError as error:
            self._tell(error)
            return
        if grown:
            self._write()

    def _write(self) -> None:
        """Rewrite the file: the whole past, no more."""
        if self._file is None:
            return
        minutes = list(self._kept[MINUTE_S])
        older = [one for one in self._kept[QUARTER_S] if not minutes or one.at < minutes[0].at]
        part = self._file.parent / f".{self._file.name}.part"
        try:
            _write(part, "wb", b"".join(map(_packed, [*older, *minutes])))
            part.replace(self._file)
        except OSError as error:
            self._tell(error)

    def _tell(self, error: OSError) -> None:
        if not self._is_told:
            log.warning("the history can't be kept for a restart", file=str(self._file), why=error.strerror)
        self._is_told = True


def _write(file: Path, mode: str, data: bytes) -> None:
    make_directory(file.parent)
    with open_file(file, mode) as opened:
        opened.write(data)


def _taken(kept: "deque[StatusSample]", sample: StatusSample, step: int) -> bool:
    """Make it the newest of its step, or let it add to the newest; whether a step has ended by it."""
    last = kept[-1] if kept else None
    if last is None or sample.at // step > last.at // step:
        kept.append(sample)
        return last is not None
    highest = {name: _highest(getattr(last, name), getattr(sample, name)) for name in _LAGS}
    kept[-1] = sample.model_copy(update=highest)
    return False


_LAGS = ("lag_watermark_seconds", "lag_now_seconds")


def _highest(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return max(known) if known else None


def _packed(one: StatusSample) -> bytes:
    lags = [math.nan if value is None else value for value in (one.lag_watermark_seconds, one.lag_now_seconds)]
    counts = (one.events, one.rows, one.duplicates, one.late, one.filtered, one.quarantined)
    return _RECORD.pack(one.at, *counts, *lags, one.checkpoint_ts, one.resolved_ts or 0)


def _read(file: Path, at: float) -> Iterable[StatusSample]:
    """The samples of a file, oldest first; what can't be one, or is of the future, is left out."""
    try:
        with file.open("rb") as opened:
            data = opened.read(2 * _MOST_BYTES)
    except OSError:
        return
    before = 0.0
    whole = len(data) - len(data) % _RECORD.size
    for fields in _RECORD.iter_unpack(data[:whole]):
        moment, counts, lags, tsos = fields[0], fields[1:7], fields[7:9], fields[9:]
        is_one = min(counts) >= 0 and max(tsos) <= _LAST_TSO and not any(map(math.isinf, lags))
        if before < moment <= at and is_one:  # NaN is in no order
            before = moment
            yield _sample(moment, counts, [None if math.isnan(lag) else lag for lag in lags], tsos)


def _sample(at: float, counts: tuple[int, ...], lags: list[float | None], tsos: tuple[int, ...]) -> StatusSample:
    events, rows, duplicates, late, filtered, quarantined = counts
    return StatusSample(
        at=at,
        events=events,
        rows=rows,
        duplicates=duplicates,
        late=late,
        filtered=filtered,
        quarantined=quarantined,
        lag_watermark_seconds=lags[0],
        lag_now_seconds=lags[1],
        checkpoint_ts=tsos[0],
        resolved_ts=tsos[1] or None,
    )


def sample_of(status: Status, at: float) -> StatusSample:
    """A status, cut down to what charts show."""
    return StatusSample(
        at=at,
        events=status.events,
        rows=status.rows_written,
        duplicates=status.duplicates,
        late=status.late,
        filtered=status.filtered,
        quarantined=status.quarantined,
        lag_watermark_seconds=status.source.lag_seconds if status.checkpoint_ts else None,  # else as old as TSOs are
        lag_now_seconds=status.lag_now_seconds,
        checkpoint_ts=status.checkpoint_ts,
        resolved_ts=status.source.resolved_ts,
    )
