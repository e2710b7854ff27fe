"""Breaks one thing at a time and runs the quick suites: each has to be noticed. `python -m tests.simulation.mutants`.

An argument chooses those whose file or text holds it; `--sample 10` takes ten of them, as the gate does: others for
each commit, or those of `--seed X`.

Works on a copy of the tree in a temporary directory, so that nothing of it is ever seen by others. The suites run from
the quickest to the slowest, and the first that fails ends a mutant's trial; at the end each suite that failed has to
pass without any mutant. Bytecode of the copy is checked by the hash of its source: what is not changed is compiled
once, and no mutant runs with what was compiled before it.
"""

import argparse
import compileall
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import NamedTuple

from tests.cells import seed

ROOT = Path(__file__).parents[2]
Suite = tuple[str, ...]
"""Arguments of Python."""
_PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
# test_mutants would always fail: it looks for the text that a mutant has just changed; and the copy has no core
_SCRIPTS = (*_PYTEST, "tests/simulation", "-k", "not histories and not history and not mutant and not core")
_HISTORIES = ("-m", "tests.simulation", "0", "--histories", "150")
_LONGEST_S = 1800
_ENVIRONMENT = {**os.environ, "HYPOTHESIS_PROFILE": "unshrunk"}
_IGNORED = shutil.ignore_patterns("vectors", "__pycache__", ".hypothesis", "_core.so")


class Mutant(NamedTuple):
    """In `file`, `old` becomes `new`; `tests` are those of other names that are about it."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()


class Verdict(NamedTuple):
    """`caught` or `no end`, by which suite and which of its tests; `SURVIVED`; `gone` if the text is not there."""

    word: str
    suite: Suite | None = None
    test: str = ""


_DELETES, _WRITES = "*spool.groups(RowOp.DELETE)", "*spool.groups(RowOp.WRITE)"
_ENCODER = "consumer/tasks/encoding/chunk_encoder.py"
_UPDATES = ("tests/service/rows/test_updates_without_old_rows.py",)
_MOVED = ("tests/service/commands/test_quarantine_moved.py",)
_INTENTS = ("tests/service/ddl/test_open_intents.py",)
_ARCHIVE = ("tests/ordering/test_archive.py",)
_POSTGRES = ("tests/service/targets/test_postgres.py",)
_CLASSES = ("tests/verifying/test_storage_classes.py",)
_KEYS = ("tests/service/ddl/test_changed_keys.py",)
_LOGS = ("tests/simulation/test_logs.py",)
_REPEATS = ("tests/simulation/test_repeats.py",)
_SEAL = ("tests/consumer/redis/test_seal.py",)
_LEADERS = ("tests/simulation/test_leaders.py",)
_REFUSED = ("tests/simulation/test_quarantine.py",)
_KEYLESS = ("tests/service/rows/test_keyless.py",)
_RUNS = ("tests/consumer/tasks/test_batch_scan.py",)
_ROWS = ("tests/simulation/test_rows.py",)
_NO_PERMITS = "self._permits.set(changefeed)"
MUTANTS = (
    Mutant("ordering/rows/net_effect.py", "if other > last:", "if False:"),
    Mutant("ordering/rows/net_effect.py", "if other > last:", "if other < last:"),
    Mutant("ordering/rows/transactions.py", "return half[1], half[0]", "return half[0], half[1]"),
    Mutant("ordering/rows/transactions.py", "if half[1] == last[1] and half[0] == last[0]:", "if False:"),
    Mutant("ordering/rows/split_update.py", "_DELETE) if moved else None", "_DELETE) if False else None"),
    Mutant("ordering/rows/identity.py", "return commit_ts << 1 | half", "return commit_ts << 1 | (1 - half)"),
    Mutant("ordering/watermark.py", "return max((ts for", "return min((ts for"),
    Mutant("ordering/watermark.py", "lowest = min(", "lowest = max("),
    Mutant("ordering/watermark.py", "if silent or not watermarks:", "if not watermarks:"),
    Mutant("ordering/ddl_barrier.py", "ddl.commit_ts < checkpoint or", "ddl.commit_ts <= checkpoint or"),
    Mutant("ordering/ddl_barrier.py", "== checkpoint and known)", "== checkpoint and False)"),
    Mutant("ordering/ddl_barrier.py", "ddl.commit_ts < next_row", "ddl.commit_ts <= next_row"),
    Mutant("ordering/ddl_barrier.py", "and ddl.commit_ts > start", ""),
    Mutant("ordering/ddl_barrier.py", "return min((ddl.commit_ts", "return max((ddl.commit_ts"),
    Mutant("ordering/topic_lifecycle.py", "if not topic.complete:", "if False:"),
    Mutant("ordering/topic_lifecycle.py", "ended=topic.ended and not more", "ended=topic.ended"),
    Mutant("ordering/topic_lifecycle.py", "if ddl.drops_database is not None and", "if False and"),
    Mutant("ordering/window.py", "following - done > limit:", "following - done > 2 * limit:"),
    Mutant("ordering/window.py", "if low < ts < resolved", "if low <= ts < resolved"),
    Mutant("ordering/window.py", "if self.to_end:", "if False:"),
    Mutant("ordering/rows/segments.py", "ddl.commit_ts >= segment.high for", "True for"),
    Mutant("consumer/tasks/scans/segment_scan.py", "whole = self._with(at, report, whole)", "pass"),
    Mutant("consumer/pipeline/segments.py", "if stands(tables, reading.handle_keys, now)", "if True", _KEYS),
    Mutant("ordering/progress.py", 'changes.setdefault("executed", frozenset())', "pass"),
    Mutant("ordering/progress.py", "if checkpoint_ts < self.checkpoint_ts:", "if False:"),
    Mutant("ordering/progress.py", 'p["watermark"], p["counted_to"]', 'None, p["counted_to"]'),
    Mutant("sinks/target_session.py", "            self.check_epoch(lease)\n            yield", "            yield"),
    Mutant("sinks/unit_rows.py", f"{_DELETES}, {_WRITES}", f"{_WRITES},"),
    Mutant("sinks/unit_rows.py", f"{_DELETES}, {_WRITES}", f"{_WRITES}, {_DELETES}"),
    Mutant("sinks/target.py", "self.session.save(progress, lease)\n            observe(Step.PROG", "observe(Step.PROG"),
    Mutant("sinks/target_session.py", "self._open.rollback()\n            raise", "pass\n            raise"),
    Mutant("sinks/bookkeeping/progress_rows.py", "and progress.goes_on_from(saved.progress)", ""),
    Mutant(
        "sinks/bookkeeping/progress_rows.py",
        "start = saved.start or self._kept(saved)",
        "start = saved.start or Start.of(saved.row)",
    ),
    Mutant("ordering/progress.py", "executed=executed, counts=counts)", "counts=counts)"),
    Mutant("sinks/target.py", _NO_PERMITS, "pass"),
    Mutant("sinks/bookkeeping/write_permits.py", "name != attempt.phase.name or (", "(", _ROWS),
    Mutant("sinks/bookkeeping/write_permits.py", "holder > highest if", "False if", _ROWS),
    Mutant("sinks/bookkeeping/write_permits.py", "else holder != attempt.number)", "else False)", _ROWS),
    Mutant("sinks/target.py", "                    self._permits.check(attempt)\n", ""),
    Mutant("sinks/target.py", "return before > 0", "return False"),
    Mutant("sinks/rows/schema.py", "return any(set(unique) != set(key)", "return any(False"),
    Mutant(_ENCODER, "WhichRows.ALL if plain else WhichRows.GONE", "WhichRows.GONE", _ROWS),
    Mutant(_ENCODER, "if self.only is not RowOp.WRITE:", "if False:", _ROWS),
    Mutant(_ENCODER, "elif self.again and plain:", "elif False:", _ROWS),
    Mutant("consumer/tasks/write.py", "if deletes else []", "if False else []", _ROWS),
    Mutant("ordering/rows/manifest.py", "if manifest.digest != accounts[manifest.task]:", "if False:"),
    Mutant("ordering/rows/manifest.py", "if manifest.error is not None:", "if False:"),
    Mutant("ordering/rows/manifest.py", "or came[task] != 1", ""),
    Mutant("consumer/tasks/write.py", "        if report.deletes:", "        if False:", _ROWS),
    Mutant(
        "consumer/tasks/write.py",
        "self.target.save(recorded,",
        "self.target.save(replace(recorded, window=None),",
        _ROWS,
    ),
    Mutant("ordering/planner.py", "if progress.window is not None:", "if False:"),
    Mutant("ordering/planner.py", "if window.to_end or window == progress.window:", "if window.to_end:"),
    Mutant("consumer/pipeline/session.py", "self.target.save(after, self.lease, rows=spool, aside=aside)\n", "pass\n"),
    Mutant(
        "consumer/tasks/scans/scan.py", "elif new:\n                self._repeat", "else:\n                self._repeat"
    ),
    Mutant("consumer/tasks/scans/scan.py", "if ts < self._low:", "if ts <= self._low:"),
    Mutant("consumer/tasks/scans/scan.py", "ended_early = ts > self._until", "ended_early = ts >= self._until", _RUNS),
    Mutant("consumer/tasks/scans/scan.py", "commit_ts < report.next_row_ts", "commit_ts > report.next_row_ts"),
    Mutant("consumer/pipeline/advance.py", "held += [", "held + ["),
    Mutant("consumer/pipeline/advance.py", "if partition not in ended:", "if True:"),
    Mutant("ordering/planner.py", "return end if end < window.high else None", "return None"),
    Mutant("consumer/pipeline/judge.py", "(0 if window.rewound else duplicates_in(reports))", "0", _REPEATS),
    Mutant("consumer/source/probe.py", "0 if memory is None else memory.looked_to", "0"),
    Mutant("consumer/source/probe.py", "(at.progress.start, at.bound) for", "(at.progress.start, at.end) for", _LOGS),
    Mutant("consumer/source/probe.py", "if bound == end.offset else None", ""),
    Mutant("consumer/source/probe.py", "ends |= self.control.written_ends(may_have_ended)", "pass"),
    Mutant("consumer/source/probe.py", "self._check_kept(known, found)", "pass"),
    Mutant("consumer/source/probe.py", "{p: self._starts[p] for p in begins}", "dict(begins)"),
    Mutant("consumer/source/continuity.py", "if ends[p].offset < at.offset:", "if False:"),
    Mutant("consumer/source/continuity.py", "if end is None or end < reached[p].offset:", "if end is None:"),
    Mutant("consumer/source/continuity.py", "if end is None or end < reached", "if end is not None and end < reached"),
    Mutant("consumer/source/continuity.py", "if end is None or end < upto:", "if end is None:"),
    Mutant("consumer/source/continuity.py", "if topic.id != known[topic.name].id:", "if False:"),
    Mutant("consumer/source/continuity.py", "if epoch not in (None, named))", "if False)"),
    Mutant("consumer/source/continuity.py", "if ask or told[-1:] != ((named, read.stop),):", "if ask:"),
    Mutant("ordering/sources/retention.py", "or times[p] + CLOCK_SLACK_MS > physical_ms(ts)", ""),
    Mutant("ordering/sources/retention.py", "p not in times or", "p in times and"),
    Mutant("ordering/sources/archive.py", "partitions={},", ""),
    Mutant("ordering/sources/archive.py", "executed=done,", ""),
    Mutant("consumer/run/sides.py", "        if lacking:", "        if False:"),
    Mutant("consumer/kafka/account.py", "if (reached.offset, reached.messages) != (part.stop, taken):", "if False:"),
    Mutant("consumer/pipeline/advance.py", "known is None or known.is_new or known.is_unread", "known is None"),
    Mutant("consumer/pipeline/judge.py", "found = added(session.progress, session.probe)", "found = session.progress"),
    Mutant("consumer/redis/ledger.py", "covered & ~found", "covered & found"),
    Mutant("consumer/redis/seal.py", "bool(self.key) and hmac", "bool(self.key) or hmac"),
    Mutant("consumer/redis/seal.py", "self.ledger, low, high", "low, high"),
    Mutant("consumer/redis/seal.py", "low, high, size, prints, term]", "size, prints, term]"),
    Mutant("consumer/redis/ledger.py", "if seal.fits(made, told.seal) else None", "if made else None", _SEAL),
    Mutant("consumer/redis/ledger.py", "return whole and self._seal.fits(", "return whole or self._seal.fits(", _SEAL),
    Mutant("ordering/rewind.py", "window=window,", "window=None,"),
    Mutant("consumer/pipeline/apply_mode.py", "net=recorded is not None or", "net=False or"),
    Mutant(
        "consumer/quarantine/collector.py", "one.commit_ts is None or one.commit_ts <= checkpoint)", "True)", _REFUSED
    ),
    Mutant("consumer/quarantine/collector.py", "mode = Mode.SKIP if", "mode = Mode.SKIP if True or", _REFUSED),
    Mutant("consumer/quarantine/collector.py", "if later > commit_ts and", "if later >= 0 and", _REFUSED),
    Mutant("consumer/quarantine/collector.py", "copy.position not in self._modes]", "not self._modes]", _REFUSED),
    Mutant("consumer/tasks/scans/quarantine_scan.py", "order & ~RowOp.WRITE", "order", _REFUSED),
    Mutant(
        "consumer/tasks/scans/quarantine_scan.py",
        "if commit_ts > self._watched",
        "if commit_ts < self._watched",
        _REFUSED,
    ),
    Mutant("consumer/tasks/scans/quarantine_scan.py", "            self.report.deletes += 1\n", "", _REFUSED),
    Mutant("ordering/takeover.py", "self._since is None or sign != self._sign", "self._since is None"),
    Mutant("ordering/takeover.py", "if leased is False else", "if leased is None else"),
    Mutant("ordering/takeover.py", ">= limit", ">= 2 * limit"),
    Mutant("ordering/rewind.py", "max(window.high, progress.checkpoint_ts)", "progress.checkpoint_ts"),
    Mutant("ordering/rewind.py", "min(at.start, spans[p][0])", "at.start"),
    Mutant("ordering/rewind.py", "        base_ts=to,\n", ""),
    Mutant("ordering/rewind.py", "progress.executed | {any_ddl_at(to)}", "progress.executed"),
    Mutant("ordering/rewind.py", "        ledger=ledger,\n", ""),
    Mutant("ordering/rows/keyless_rows.py", "ts <= self._watermark:", "ts < self._watermark:"),
    Mutant("ordering/rows/keyless_rows.py", "count = 1 if half.mark or", "count = 1 if False or"),
    Mutant("ordering/rows/keyless_rows.py", "max(most, count))", "count)"),
    Mutant("ordering/rows/keyless_rows.py", "max(count, most.get(half, 0))", "count + most.get(half, 0)"),
    Mutant("ordering/rows/keyless_rows.py", "count if half.order & RowOp.WRITE else -count", "count"),
    Mutant("ordering/rows/keyless_rows.py", "(behind and table not in self._again)", "behind"),
    Mutant("ordering/rows/equal_rows.py", "later.copy() if equal.is_last else Counter()", "Counter()"),
    Mutant("ordering/rows/equal_rows.py", "or (table, group.commit_ts) in self._met)", "or False)"),
    Mutant("ordering/rows/bucketing.py", "if not bounds or bounds[-1] != last_ts:", "if False:"),
    Mutant("ordering/rows/bucketing.py", "if held or not bounds or sizes[-1] > 1:", "if held or not bounds:"),
    Mutant("ordering/rows/bucketing.py", "key_hash % self.sizes[group]", "0"),
    Mutant("sinks/target.py", "            self._progress.raise_epoch(changefeed)\n", "", _LEADERS),
    Mutant(
        "sinks/target.py",
        "if held is not None:\n                self.session.comp",
        "if False:\n                self.session.comp",
        _LEADERS,
    ),
    Mutant("sinks/unit_rows.py", "            db.back_to_point()\n", "", _REFUSED),
    Mutant("sinks/target_session.py", "if epoch != lease.epoch:", "if False:", _LEADERS),
    Mutant(
        "sinks/target.py",
        "self.quarantine.change(lease.changefeed, aside)\n        self.schemas",
        "self.schemas",
        _REFUSED,
    ),
    Mutant("sinks/target.py", "        self._end_writers(changefeed)", "        pass", _LEADERS),
    Mutant("consumer/filters/events.py", "if tidb.only_new and (", "if False and (", _UPDATES),
    Mutant(
        "consumer/tasks/keyless.py", 'other if len(halves) > 1 else b""', 'b""', ("tests/service/rows/test_keyless.py",)
    ),
    Mutant("consumer/tasks/keyless.py", "if message.tidb.only_new:", "if False:", _UPDATES),
    Mutant("ordering/progress.py", "({rest} if more else set())", "set()", _ARCHIVE),
    Mutant("ordering/sources/archive.py", "(rest_at(at) in executed or 0 < done < parts)", "0 < done < parts"),
    Mutant("ordering/sources/retention.py", "    if began_after(times, ts):", "    if False:", _ARCHIVE),
    Mutant("ordering/sources/retention.py", "topic not in known and began_after(first, ts)", "False", _ARCHIVE),
    Mutant("consumer/quarantine/collector.py", "(there.key, there.value) == (kept.key, kept.value)", "True", _MOVED),
    Mutant("sinks/target.py", " and self._ddl.may_have_run(line)", " and False", _INTENTS),
    Mutant("ordering/sources/retention.py", "min(times.values(), default", "max(times.values(), default", _ARCHIVE),
    Mutant("sinks/postgres/connection.py", "if found == tuple(self._set):", "if True:", _POSTGRES),
    Mutant("sinks/sqlite/digests.py", "NOT IN ('blob', 'null')\"", "= 'integer'\"", _CLASSES),
    Mutant("consumer/spark/local_files.py", " or xxh3_64_intdigest(found) != place.digest", ""),
    Mutant("consumer/source/outside_watermark.py", "return 0 < applied < self._begun", "return False"),
)


def main() -> int:
    """Run all that are wanted; 1 if one survives, or is nowhere to be found; 2 if a suite fails by itself."""
    parser = argparse.ArgumentParser()
    parser.add_argument("wanted", nargs="?", default="")
    parser.add_argument("--sample", type=int, default=len(MUTANTS))
    parser.add_argument("--seed", default=seed())
    chosen = parser.parse_args()
    survivors, failed_by = 0, set[Suite]()
    with tempfile.TemporaryDirectory() as directory:
        copy = copied(Path(directory) / "tree")
        for mutant in sampled(chosen.wanted, chosen.sample, chosen.seed):
            begun, verdict = time.monotonic(), tried(copy, mutant)
            survivors += verdict.suite is None
            failed_by |= {verdict.suite} if verdict.suite else set()
            print(f"{verdict.word:9} {mutant.file}: {mutant.old!r} -> {mutant.new!r}")
            print(f"          {time.monotonic() - begun:.0f} s {verdict.test}", flush=True)
        for suite in sorted(failed_by):
            if verdict_of(copy, suite).suite:
                print(f"fails without any mutant: {' '.join(suite)}")
                return 2
    return min(1, survivors)


def copied(copy: Path) -> Path:
    """The tree without what the suites don't need, compiled."""
    for folder in ("ordering", "sinks", "consumer", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=_IGNORED)
    shutil.copy(ROOT / "pyproject.toml", copy)
    compileall.compile_dir(copy, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return copy


def sampled(wanted: str, count: int, seed: str) -> list[Mutant]:
    """So many of the mutants whose file or text holds `wanted`; the same for the same seed."""
    found = [mutant for mutant in MUTANTS if wanted in f"{mutant.file} {mutant.old}"]
    return random.Random(seed).sample(found, min(count, len(found)))


def tried(copy: Path, mutant: Mutant) -> Verdict:
    """What the suites say of the tree with that mutant, from the first that fails."""
    file = copy / mutant.file
    before = file.read_text()
    if mutant.old not in before:
        return Verdict("gone")
    file.write_text(before.replace(mutant.old, mutant.new))
    try:
        verdicts = (verdict_of(copy, suite) for suite in suites_of(copy, mutant))
        return next((verdict for verdict in verdicts if verdict.suite), Verdict("SURVIVED"))
    finally:
        file.write_text(before)


def suites_of(copy: Path, mutant: Mutant) -> list[Suite]:
    """The tests of the file that is changed, then whole histories, then those that are written down."""
    changed = Path(mutant.file)
    own = sorted(str(path) for path in (copy / "tests" / changed.parts[0]).rglob(f"test_{changed.stem}.py"))
    own += mutant.tests
    return [*([(*_PYTEST, *own)] if own else []), _HISTORIES, _SCRIPTS]


def verdict_of(copy: Path, suite: Suite) -> Verdict:
    """`caught` if a suite fails, `no end` if it takes longer than half an hour, `SURVIVED` if it passes."""
    try:
        done = subprocess.run(
            [sys.executable, *suite],
            cwd=copy,
            env=_ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Verdict("no end", suite)
    if done.returncode == 0:
        return Verdict("SURVIVED")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return Verdict("caught", suite, failed[1] if failed else " ".join(suite[1:]))


if __name__ == "__main__":
    sys.exit(main())
