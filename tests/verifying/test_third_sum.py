"""Events, target and upstream: which two differ says who is wrong."""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from consumer.proof import upstream as third_sum
from consumer.proof.ddls import under_way
from consumer.proof.report import Proof, ProofOf, ProofVerdict
from consumer.proof.run import Proving
from consumer.proof.state import ExpectedTable
from consumer.proof.upstream import UpstreamAnswer, with_upstream
from consumer.verify.sides import Side, open_other_side
from ordering.events import TableName
from sinks.bookkeeping.ddl_log import DdlRecord, DdlState
from tests.service.cells import SqliteCells
from tests.service.commands.test_prove import ddl_amid_a_look, every, feed, in_sqlite, prove, verdicts
from tests.service.lab import eventually
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, watermarks
from tests.service.pipeline.test_upstream import Origin
from tests.verifying.test_moments import made, origin, run, verified
from tests.verifying.upstreams import Verified

__all__ = ["every", "feed", "origin", "verified"]
EQUAL, DIFFERENT, BASE, UNPROVEN = ProofVerdict.EQUAL, ProofVerdict.DIFFERENT, ProofVerdict.BASE, ProofVerdict.UNPROVEN
KEPT = ExpectedTable(("id\tint\tnumber",), {}, 1, doubt="it differed at an earlier proof")


@pytest.mark.parametrize(
    ("before", "is_equal", "after", "reason", "doubted"),
    [
        (EQUAL, True, EQUAL, "", False),
        (EQUAL, False, DIFFERENT, "the target, which holds what the events say", True),
        (BASE, True, EQUAL, "", False),
        (BASE, False, DIFFERENT, "the upstream holds other rows", True),
        (UNPROVEN, True, EQUAL, "", False),
        (UNPROVEN, False, DIFFERENT, "the upstream holds other rows", True),
        (DIFFERENT, True, DIFFERENT, "the events say something else", True),
        (DIFFERENT, False, DIFFERENT, "the upstream holds other rows", True),
        (EQUAL, None, EQUAL, "", True),
    ],
)
def test_who_is_wrong(
    before: ProofVerdict, is_equal: bool | None, after: ProofVerdict, reason: str, doubted: bool
) -> None:
    found = with_upstream(ProofOf(before, "", {}, KEPT), UpstreamAnswer(is_equal))
    assert found.verdict is after
    assert reason in found.reason
    assert (found.reason == "") == (reason == "")
    assert found.expected is not None
    assert bool(found.expected.doubt) is doubted


@pytest.mark.parametrize("verdict", [BASE, UNPROVEN])
def test_columns_that_the_upstream_was_not_asked_about_stay_in_doubt(verdict: ProofVerdict) -> None:
    """A table differed, a DDL made it start over, and FLOATs are in no sum of the upstream's."""
    answer = UpstreamAnswer(True, left_out=("f",))
    found = with_upstream(ProofOf(verdict, "", {}, KEPT, doubt=KEPT.doubt), answer)
    assert (found.verdict, found.upstream, found.doubt) == (UNPROVEN, "equal", KEPT.doubt)
    assert found.reason.startswith(f"{KEPT.doubt}, and the upstream was not asked about f: ")
    assert found.expected == KEPT


@pytest.mark.parametrize("verdict", [BASE, UNPROVEN, EQUAL])
def test_columns_that_nobody_has_compared_make_no_base_equal(verdict: ProofVerdict) -> None:
    found = with_upstream(
        ProofOf(verdict, "why" * (verdict is not EQUAL), {}, None), UpstreamAnswer(True, left_out=("j", "f"))
    )
    assert found.verdict is verdict
    assert found.reason == ("" if verdict is EQUAL else "why, and the upstream was not asked about j, f")
    assert found.upstream == "equal"


def test_a_target_that_may_be_wrong_where_nobody_was_asked_is_not_called_right() -> None:
    """A masked value was changed by hand: all that the upstream can tell of is equal."""
    found = with_upstream(ProofOf(DIFFERENT, "", {}, KEPT), UpstreamAnswer(True, left_out=("s", "j")))
    assert found.verdict is DIFFERENT
    assert "was not asked about s, j: the target may be wrong there" in found.reason
    assert "rebase" not in found.reason


@pytest.mark.parametrize("rows", ["equal", "other", "column"])
def test_a_column_that_the_target_lacks_does_not_hide_other_rows(
    feed: LocalFeed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: str
) -> None:
    """The events say what the target holds; the upstream has a column more, and maybe other rows."""
    feed.send([*begun(), *watermarks(4)])
    feed.apply()
    shutil.copytree(tmp_path / "target", tmp_path / "upstream")
    with closing(sqlite3.connect(tmp_path / "upstream" / "d.sqlite")) as upstream, upstream:
        upstream.execute("ALTER TABLE t ADD COLUMN x INT") if rows != "equal" else None
        upstream.execute("UPDATE t SET v = 99") if rows == "other" else None
    feed.with_(source={"upstream": {"uri": "tidb://r@h:4000"}})
    asked = lambda *_: open_other_side(f"sqlite:///{tmp_path}/upstream", 1)  # noqa: E731 stands for TiDB as of C
    monkeypatch.setattr(third_sum, "open_upstream_side", asked)
    proof = prove(feed)
    assert verdicts(proof) == {"t": "different" if rows == "other" else "equal"}
    assert proof.fault == (
        "d.t: not all of it was compared with the upstream: the target has no column 'x'" if rows == "column" else ""
    )


def test_a_table_without_a_key_is_proven_by_the_upstream_alone() -> None:
    keyless = ProofOf(UNPROVEN, "its rows have no key that tells them apart", {}, None)
    assert with_upstream(keyless, UpstreamAnswer(True)).verdict is EQUAL
    assert with_upstream(keyless, None) == keyless
    assert with_upstream(replace(keyless), UpstreamAnswer(False)).verdict is DIFFERENT


def test_tables_that_a_ddl_has_taken_further_than_the_checkpoint_are_not_judged_by_it() -> None:
    def line(number: int, commit_ts: int, sql: str, state: DdlState) -> DdlRecord:
        return DdlRecord(number, commit_ts, "d", "", sql, "", state.value, "", None, "")

    tables = [TableName("d", name) for name in ("a", "b", "c", "z")]
    lines = [
        line(1, 9, "ALTER TABLE `d`.`a` ADD COLUMN x INT", DdlState.DONE),
        line(2, 10, "ALTER TABLE `d`.`z` ADD COLUMN x INT", DdlState.DONE),
        line(3, 10, "ALTER TABLE `d`.`b` ADD COLUMN x INT", DdlState.INTENT),
        line(4, 11, "CREATE TABLE `d`.`c` (id INT PRIMARY KEY)", DdlState.DONE),
    ]
    assert under_way(lines, 10, tables) == {TableName("d", "b"), TableName("d", "c")}


def proof_of(verified: Verified) -> Proof:
    log = verified.feed.log_of_messages
    return Proving(verified.feed.config, control=log, readers=log).run()  # type: ignore[arg-type]


def verdict(verified: Verified, name: str = "t") -> tuple[ProofVerdict, str, str]:
    found = {table.table: one for table, (_, one) in proof_of(verified).tables.items()}[name]
    return found.verdict, found.reason, found.upstream


@pytest.mark.service
def test_the_upstream_is_asked_as_of_c(origin: Origin, verified: Verified) -> None:
    made(origin, verified)
    checkpoint = verified.cells.progress(verified.feed.name)["checkpoint_ts"]
    eventually("the origin's clock has passed the checkpoint", lambda: origin.clock() > checkpoint)
    # the rows were written by hand on both sides: no event says them, so the events are what is wrong
    assert verdict(verified)[0] is DIFFERENT
    assert "the events say something else" in verdict(verified)[1]
    log = verified.feed.log_of_messages
    rebased = Proving(verified.feed.config, ("*.*",), control=log, readers=log).run()  # type: ignore[arg-type]
    assert [one.verdict for _, one in rebased.tables.values()] == [EQUAL], "the upstream says so"
    origin.run(f"UPDATE {origin.database}.t SET v = 77")
    assert verdict(verified) == (EQUAL, "", "equal"), "what came later does not count"
    run(verified, origin, "UPDATE t SET v = 9 WHERE id = 1")
    assert verdict(verified)[::2] == (DIFFERENT, "different")
    verified.repaired(tables=(f"{origin.database}.t",))
    assert verdict(verified)[::2] == (EQUAL, "equal"), "the command that the hint names has repaired it"


@pytest.mark.service
def test_an_upstream_that_is_away_is_said_and_decides_nothing(origin: Origin, verified: Verified) -> None:
    made(origin, verified)
    verified.feed.with_(source={"upstream": {"uri": "tidb://root@127.0.0.1:9"}})
    found = proof_of(verified)
    assert "the upstream was not asked" in found.fault
    assert [one.upstream for _, one in found.tables.values()] == [""]


@pytest.mark.parametrize(
    ("sql", "kind", "name"),
    [("RENAME TABLE `t` TO `u`", "RENAME", "u"), ("DROP TABLE `t`", "ERASE", "t"),
     ("CREATE TABLE `n` (id INT PRIMARY KEY)", "CREATE", "n"), ("ALTER TABLE `t` DROP COLUMN `v`", "ALTER", "t"),
     ("ALTER TABLE `t` ADD COLUMN `x` INT", "ALTER", "t"), ("TRUNCATE TABLE `t`", "TRUNCATE", "t")],
)  # fmt: skip
def test_a_ddl_after_the_snapshot_is_no_difference_from_the_upstream(
    every: LocalFeed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, kind: str, name: str
) -> None:
    """What the target tells of its tables may be newer than its checkpoint, of which the upstream is asked."""
    if isinstance(every.cells, SqliteCells):
        return  # while it is read nobody commits
    upstream = in_sqlite(tmp_path / "up")
    for one in (every, upstream):
        one.send([*begun(), *watermarks(4)])
        one.apply()
    every.with_(source={"upstream": {"uri": "tidb://r@h:4000"}})

    def asked(_: str, checkpoint_ts: int, readers: int) -> Side:
        """Stands for TiDB as of C; a proof that begins again has another C."""
        if checkpoint_ts >= at(9):
            upstream.send([ddl(f"d.{name}", 7, sql, kind=kind), *watermarks(9)])
            upstream.apply()
        return open_other_side(upstream.uri, readers)

    monkeypatch.setattr(third_sum, "open_upstream_side", asked)
    looks = ddl_amid_a_look(every, monkeypatch, ddl(f"d.{name}", 7, sql, kind=kind))
    proof = prove(every)
    assert looks
    assert "different" not in verdicts(proof).values(), [one.reason for _, one in proof.tables.values()]
