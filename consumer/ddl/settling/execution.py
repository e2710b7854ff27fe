"""What becomes of a DDL whose turn has come: it is executed, passed over, or as an operator decided; or it fails.

A DDL that fails stops the changefeed: it is in the DDL log with the error, and nothing after it is applied until it can
be executed or an operator decides (`reconciler ddl skip`, `reconciler ddl done`).
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

import structlog

from consumer.ddl.ask_upstream import Asking
from consumer.ddl.guard import reading
from consumer.ddl.lost_keys import LostKey, lost_keys, without
from consumer.ddl.routing import after
from consumer.ddl.settling.decision import DdlDecision, Deciding, keeping
from consumer.ddl.settling.failures import Failures, named
from consumer.ddl.settling.own_names import OwnNames, here
from ordering.errors import ConfigError, InputError
from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from ordering.timestamps import utc_text
from sinks.bookkeeping.ddl_log import DECIDED, DdlRecord, DdlState
from sinks.bookkeeping.progress_rows import Lease
from sinks.ddl.kept_definitions import NOTHING_HERE, PlacedDdl
from sinks.steps import Observer
from sinks.target import Target

log = structlog.get_logger()
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Execution:
    """Executes DDLs for the one who leads."""

    target: Target
    lease: Lease
    observe: Observer
    asking: Asking
    deciding: Deciding
    names: OwnNames
    failures: Failures

    def unsettled(self) -> list[DdlRecord]:
        """Lines of the DDL log that this run finds open."""
        return self.target.ddl_log.unsettled(self.lease.changefeed)

    def placed(self, ddl: DdlEvent, stayed: Collection[TableName]) -> DdlEvent:
        """The DDL with the tables that it means where its names leave that open. `stayed`: tables that it left."""
        return self.asking.placed(ddl, self.target.catalog(), stayed)

    def settle(
        self,
        ddl: DdlEvent,
        waiting: Iterable[DdlEvent],
        unsettled: Collection[DdlRecord],
        before: Progress,
        progress: Progress,
    ) -> Progress:
        """Do with the DDL what is to be done; the progress that was saved. `waiting`: all DDLs still to be executed.

        `before` and `progress`: without the DDL and with it.

        Raises InputError or TargetError, with the DDL's position, if it can't be done.
        """
        line = next((line for line in unsettled if line.is_of(ddl)), None)
        if line is not None and DdlState(line.state) in DECIDED:
            is_done = DdlState(line.state) is DdlState.TAKE
            return self._pass(ddl, line, self._keeping(ddl, progress, self.deciding.last_keys(ddl), is_done=is_done))
        waiting = [ddl if other.identity == ddl.identity else other for other in waiting]
        begun = _begun(line)
        with self.failures.noted(ddl):
            found = self.deciding.decide(ddl, waiting, begun, progress)
        if found.makes_keys:
            before, progress = self._drop_lost_keys(found.ddl, unsettled, before, progress)
        progress = self._keeping(found.ddl, progress, found.left_out, is_done=found.makes_keys)
        if found.because:
            return self._pass_over(found, progress)
        with self.failures.noted(found.ddl):
            return self._execute(self.asking.completed(found.ddl), progress, torn=begun is not None)

    def _execute(self, ddl: DdlEvent, progress: Progress, *, torn: bool) -> Progress:
        found = self.names.routed(ddl, progress, torn=torn)
        ddl, progress = found.ddl, after(progress, found)
        if found.because:
            self._ignore(ddl, found.because, here(found), progress)
            return progress
        if found.rows is not None:
            log.info("changing a shard's rows", at=utc_text(ddl.commit_ts), statement=ddl.statement[:_SHOWN])
            with named(ddl):
                self.target.merged.change(ddl, found.rows, progress, self.lease, self.observe)
            self.target.know(progress)
            return progress
        log.info("executing DDL", at=utc_text(ddl.commit_ts), database=ddl.database, statement=ddl.statement[:_SHOWN])
        with named(ddl), reading(ddl):
            self.target.execute_ddl(ddl, progress, self.lease, self.observe)
        return progress

    def _keeping(self, ddl: DdlEvent, progress: Progress, left_out: Collection[str], *, is_done: bool) -> Progress:
        # of tables that are not taken no key is told; what can't be read keeps nothing below
        with suppress(InputError, ConfigError):
            is_done = is_done or self.deciding.is_left_out(ddl)
        return keeping(ddl, progress, left_out, self.target.catalog(), is_done=is_done)

    def _drop_lost_keys(
        self, ddl: DdlEvent, unsettled: Collection[DdlRecord], before: Progress, progress: Progress
    ) -> tuple[Progress, Progress]:
        """Drop what upstream dropped before and the target has kept, where the DDL makes another key."""
        begun = [line.sql for line in unsettled if line.commit_ts == ddl.commit_ts]
        with reading(ddl):
            found = lost_keys(ddl, progress.kept_keys, self.target.catalog(), begun)
        for lost in found:
            kept = without(progress.kept_keys, ddl, lost.name)
            before, progress = replace(before, kept_keys=kept), replace(progress, kept_keys=kept)
            self._drop_lost(lost, unsettled, before)
        return before, progress

    def _drop_lost(self, lost: LostKey, unsettled: Collection[DdlRecord], before: Progress) -> None:
        """Drop a key as `settle` executes a DDL; it has a line of its own in the DDL log, and moves no offsets."""
        drop = lost.ddl
        line = next((line for line in unsettled if line.is_of(drop)), None)
        if line is not None and DdlState(line.state) in DECIDED:
            self._pass(drop, line, before)
            return
        because = "upstream dropped this key before, and makes another one now"
        log.warning("a key that was kept is dropped", at=utc_text(drop.commit_ts), because=because, statement=drop.sql)
        with self.failures.noted(drop):
            lost.check()
            self._execute(drop, before, torn=_begun(line) is not None)

    def _pass(self, ddl: DdlEvent, line: DdlRecord, progress: Progress) -> Progress:
        """Do with a DDL as an operator has decided."""
        becomes = DECIDED[DdlState(line.state)].value
        log.warning("DDL not executed, as decided", at=utc_text(ddl.commit_ts), becomes=becomes, reason=line.reason)
        if self.names.routes.rules and DdlState(line.state) is DdlState.TAKE:
            line, progress = self.names.made_by_hand(ddl, line, progress)
        else:
            line = replace(line, **self._here(ddl, progress)._asdict())
            progress = self.names.passed_over(ddl, progress)
        self.target.settle_ddl(line, progress, self.lease, self.observe)
        return progress

    def _pass_over(self, found: DdlDecision, progress: Progress) -> Progress:
        """Leave out a DDL that is ignored."""
        progress = self.names.passed_over(found.ddl, progress)
        self._ignore(found.ddl, found.because, self._here(found.ddl, progress), progress)
        return progress

    def _here(self, ddl: DdlEvent, progress: Progress) -> PlacedDdl:
        """A DDL of which nothing is executed, by the target's names."""
        try:
            if self.deciding.is_left_out(ddl):  # what has its name here is none of this changefeed's
                return NOTHING_HERE
        except (InputError, ConfigError):  # an operator may skip what can't be read
            return self.names.place_alone(ddl, progress)
        return self.names.of_nothing_done(ddl, progress)

    def _ignore(self, ddl: DdlEvent, because: str, placed: PlacedDdl, progress: Progress) -> None:
        tell = log.info if because.startswith("filter.") else log.warning  # what the config asks for is no news
        tell("DDL ignored", at=utc_text(ddl.commit_ts), because=because, statement=ddl.sql[:_SHOWN])
        self.target.ignore_ddl(ddl, because, placed, progress, self.lease, self.observe)


def _begun(line: DdlRecord | None) -> DdlRecord | None:
    """The line of a DDL that a killed run had begun."""
    return line if line is not None and line.state == DdlState.INTENT.value else None
