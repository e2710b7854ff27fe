"""The demo's script: servers, upstream, reconciler and reader start; one kill; the end is compared and told."""

import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from consumer.demo.compare import compared
from consumer.demo.environment import CHANGEFEED, DATABASE, Stage, interruptible, place, running
from consumer.demo.fake_ticdc.dispatcher import Dispatcher
from consumer.demo.invariant_reader import InvariantReader, progress_in
from consumer.demo.live_upstream import LiveUpstream
from consumer.demo.verdict import DemoOutcome
from consumer.demo.view import DemoView, Sample, view_for_stdout
from consumer.embedded import EmbeddedError
from consumer.embedded.jars import jar_directory
from consumer.embedded.process import last_lines
from ordering.errors import ConfigError, ReconcilerError
from ordering.progress import Counts, Progress
from ordering.timestamps import physical_ms, utc_text
from sinks.sqlite.catalog import file_of

_TICK_S = 0.2
_LONGEST_STILL_S = 90.0
_PACE = {"snapshot": 150, "transaction": 40}
"""Transactions a second: what SQLite commits one by one on a slow disk, too."""

_INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """What the user may choose."""

    seconds: float = 20.0
    seed: int = 1
    keep: Path | None = None
    consistency: Literal["snapshot", "transaction"] = "snapshot"
    raw: bool = False
    dispatcher: Dispatcher = "index-value"


def play(options: DemoOptions) -> int:
    """Play the demo; 0 if the target equals the upstream at the end and no reader ever saw a wrong total.

    Raises ConfigError where the machine can't provide what is needed, and other ReconcilerErrors.
    """
    try:
        with interruptible(), place(options.keep) as directory, view_for_stdout() as view:
            return _on_stage(options, directory, view)
    except EmbeddedError as error:
        detail = f"\n{error.detail}" if error.detail else ""
        raise ConfigError(f"{error.fact}{detail}", hint=error.hint) from error
    except KeyboardInterrupt:
        return _INTERRUPTED


def _on_stage(options: DemoOptions, directory: Path, view: DemoView) -> int:
    begun = time.monotonic()
    jar_directory("kafka", view.say)
    stage = Stage(directory, options.consistency)
    view.say("starting Kafka and Redis")
    with running([stage.kafka, stage.redis]):
        upstream = LiveUpstream(
            stage.kafka.bootstrap,
            seed=options.seed,
            dispatcher=options.dispatcher,
            raw=options.raw,
            pace=_PACE[options.consistency],
        )
        tables = [table.name for table in upstream.bank.accounts]
        reader = InvariantReader(file_of(stage.target, DATABASE), tables, upstream.bank.total)
        with closing(_Play(options, stage, upstream, reader, view)) as act:
            act.perform()
            equal = act.tell(time.monotonic() - begun)
    if options.keep:
        shutil.rmtree(stage.work, ignore_errors=True)
        view.say(f"kept in {directory}: demo.toml, reconciler.log, target/{DATABASE}.sqlite")
    return 0 if equal else 1


class _Play:
    """One performance: main loop, the kill, and what is told in the end."""

    def __init__(
        self, options: DemoOptions, stage: Stage, upstream: LiveUpstream, reader: InvariantReader, view: DemoView
    ) -> None:
        self._options, self._stage, self._upstream = options, stage, upstream
        self._reader, self._view = reader, view
        self._begun = time.monotonic()
        self._progress: Progress | None = None
        self._starts = self._kills = 0
        self._windows_when_killed = 0
        self._exit_code: int | None = None

    def close(self) -> None:
        """End whatever still runs."""
        self._reader.close()
        self._stage.reconciler.kill()
        self._upstream.close()

    def perform(self) -> None:
        """Start, kill and restart in the middle, end the upstream, wait until its last watermark is applied."""
        self._upstream.start()
        self._until("the topic is there", lambda: self._upstream.tally.messages > 1)
        self._view.say("the upstream writes: a bank whose accounts move money, change keys and cross tables, and DDL")
        self._start_reconciler()
        self._view.say(f"the reconciler starts: reconciler run {self._stage.config}")
        self._until("the upstream's accounts are open", self._is_open)
        self._reader.start()
        total = self._upstream.bank.total
        self._view.say(f"a reader adds up all balances again and again: {total:,} is right, at every moment")
        self._until("half of the time is over", lambda: self._elapsed >= self._options.seconds / 2)
        self._kill()
        self._until("the restarted reconciler goes on", self._goes_on)
        self._view.say("the restarted reconciler goes on where the target's checkpoint says")
        self._until("the time is over", lambda: self._elapsed >= self._options.seconds)
        self._upstream.end()
        self._view.say("the upstream ends; waiting for its last watermark")
        self._until("the last watermark is applied", self._is_done)
        self._exit_code = self._stage.reconciler.finish()
        self._reader.close()

    def _kill(self) -> None:
        self._view.say("kill -9 of the reconciler, in the middle of its work")
        self._stage.reconciler.kill()
        self._kills += 1
        self._windows_when_killed = self._look().counts.windows
        self._start_reconciler()

    def _start_reconciler(self) -> None:
        self._stage.reconciler.start()
        self._starts += 1

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._begun

    def _is_open(self) -> bool:
        return self._look().checkpoint_ts >= self._upstream.bank.opened_ts

    def _goes_on(self) -> bool:
        return self._look().counts.windows > self._windows_when_killed

    def _is_done(self) -> bool:
        final = self._upstream.final_ts
        return final is not None and self._look().checkpoint_ts >= final

    def _until(self, what: str, reached: Callable[[], bool]) -> None:
        """Show how things stand until something is reached; raises where nothing moves any more."""
        before, since = -1, time.monotonic()
        while not reached():
            if (checkpoint := self._look().checkpoint_ts) > before or self._elapsed < self._options.seconds:
                before, since = checkpoint, time.monotonic()
            self._upstream.check()
            self._check_reconciler()
            if self._reader.error is not None:
                raise ReconcilerError(f"the reader can't read the target: {self._reader.error}")
            if time.monotonic() - since > _LONGEST_STILL_S:
                raise ReconcilerError(f"nothing moves; waiting until {what}", hint=self._log_end())
            sample = self._sample()
            self._upstream.rest(held=sample.held)
            self._view.show(sample)
            time.sleep(_TICK_S)

    def _check_reconciler(self) -> None:
        if self._starts and not self._stage.reconciler.running:
            raise ReconcilerError("the reconciler ended by itself", hint=self._log_end())

    def _log_end(self) -> str:
        return f"the end of its log:\n{last_lines(self._stage.reconciler.log)}"

    def _look(self) -> Progress:
        self._progress = progress_in(self._stage.target, CHANGEFEED) or self._progress
        return self._progress or Progress()

    def _sample(self) -> Sample:
        tally, progress = self._upstream.tally, self._look()
        applied = sum(partition.start for partition in progress.partitions.values())
        known = progress.checkpoint_ts > 0
        return Sample(
            seconds=self._elapsed,
            rows_sent=tally.rows,
            repeats_sent=tally.repeats,
            watermarks_sent=tally.watermarks,
            ddls_sent=tally.ddls,
            upstream_restarts=tally.restarts,
            held=max(0, tally.messages - applied),
            **_counted(progress.counts),
            checkpoint=utc_text(progress.checkpoint_ts)[11:] if known else "-",
            lag_s=time.time() - physical_ms(progress.checkpoint_ts) / 1000 if known else None,
            looks=self._reader.looks,
            wrong=len(self._reader.wrong),
            kills=self._kills,
            state=self._state(progress),
        )

    def _state(self, progress: Progress) -> str:
        if progress.counts.windows > self._windows_when_killed:
            return "runs"
        return "restarts" if self._kills else "starts"

    def tell(self, seconds: float) -> bool:
        """Compare everything, print it, and judge."""
        file = file_of(self._stage.target, DATABASE)
        tables = compared(self._upstream.oracle.snapshot(), file, DATABASE)
        outcome = DemoOutcome(
            consistency=self._options.consistency,
            tables=tables,
            tally=self._upstream.tally,
            counts=self._look().counts,
            looks=self._reader.looks,
            wrong=self._reader.wrong,
            kills=self._kills,
            exit_code=self._exit_code,
            seconds=seconds,
        )
        self._view.end(tables, outcome.facts())
        faults = outcome.faults()
        for fault in faults:
            self._view.say(f"FAULT: {fault}")
        self._view.say("the demo failed" if faults else "target = upstream")
        return not faults


def _counted(counts: Counts) -> dict[str, int]:
    names = ("duplicates", "rows_written", "windows", "ddls")
    return {name: getattr(counts, name) for name in names}
