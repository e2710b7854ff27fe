"""Breaks one thing at a time and runs the quick suites: each has to be noticed. `python -m tests.simulation.mutants`.

Works on a copy of the tree in a temporary directory, so that nothing of it is ever seen by others.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_PYTEST = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
_SCRIPTS = [*_PYTEST, "tests/simulation", "-k", "not histories and not history"]
_HISTORIES = ["-m", "tests.simulation", "0", "--histories", "150"]


_ENVIRONMENT = {**os.environ, "HYPOTHESIS_PROFILE": "unshrunk"}
_IGNORED = shutil.ignore_patterns("vectors", "__pycache__", ".hypothesis")


class Mutant(NamedTuple):
    """In `file`, `old` becomes `new`."""

    file: str
    old: str
    new: str


_DELETES, _WRITES = "*spool.groups(Half.DELETE)", "*spool.groups(Half.WRITE)"
_NO_PERMITS = 'self._set_permits(changefeed, "", 0)'
UNCHANGED = Mutant("ordering/__init__.py", '"""The pure', '"""The pure')
MUTANTS = (
    Mutant("ordering/neteffect.py", "if other > last:", "if False:"),
    Mutant("ordering/neteffect.py", "if other > last:", "if other < last:"),
    Mutant("ordering/transactions.py", "return half[1], half[0]", "return half[0], half[1]"),
    Mutant("ordering/transactions.py", "if half[1] == last[1] and half[0] == last[0]:", "if False:"),
    Mutant("ordering/split.py", "_DELETE) if moved else None", "_DELETE) if False else None"),
    Mutant("ordering/identity.py", "return commit_ts << 1 | half", "return commit_ts << 1 | (1 - half)"),
    Mutant("ordering/watermark.py", "return max((ts for", "return min((ts for"),
    Mutant("ordering/watermark.py", "lowest = min(", "lowest = max("),
    Mutant("ordering/watermark.py", "if silent or not watermarks:", "if not watermarks:"),
    Mutant("ordering/barrier.py", "ddl.commit_ts < checkpoint or", "ddl.commit_ts <= checkpoint or"),
    Mutant("ordering/barrier.py", "and ddl.identity in executed", "and False"),
    Mutant("ordering/barrier.py", "ddl.commit_ts < next_row", "ddl.commit_ts <= next_row"),
    Mutant("ordering/barrier.py", "and ddl.commit_ts > start", ""),
    Mutant("ordering/barrier.py", "return min((ddl.commit_ts", "return max((ddl.commit_ts"),
    Mutant("ordering/topics.py", "if not topic.complete:", "if False:"),
    Mutant("ordering/topics.py", "ended=topic.ended and not more", "ended=topic.ended"),
    Mutant("ordering/topics.py", "if ddl.drops_database is not None and", "if False and"),
    Mutant("ordering/window.py", "following - done > limit:", "following - done > 2 * limit:"),
    Mutant("ordering/window.py", "if low < ts < resolved", "if low <= ts < resolved"),
    Mutant("ordering/window.py", "return MAX_TSO if self.to_end else self.high", "return self.high"),
    Mutant("ordering/progress.py", 'changes.setdefault("executed", frozenset())', "pass"),
    Mutant("ordering/progress.py", "if checkpoint_ts < self.checkpoint_ts:", "if False:"),
    Mutant("ordering/progress.py", 'p["watermark"], p["counted_to"]', 'None, p["counted_to"]'),
    Mutant("sinks/target.py", "self.check_epoch(lease)\n            observe(Step.APPLY", "observe(Step.APPLY"),
    Mutant("sinks/target.py", _DELETES + ", ", ""),
    Mutant("sinks/target.py", f"{_DELETES}, {_WRITES}", f"{_WRITES}, {_DELETES}"),
    Mutant("sinks/target.py", "self._save(progress, lease)\n            observe", "observe"),
    Mutant("sinks/parts.py", "self._rollback()\n            raise", "raise"),
    Mutant("sinks/saving.py", "and progress.goes_on_from(saved.progress)", ""),
    Mutant("sinks/saving.py", "start = saved.start or self._kept(saved)", "start = saved.start or Start.of(saved.row)"),
    Mutant("ordering/progress.py", "executed=executed, counts=counts)", "counts=counts)"),
    Mutant("sinks/target.py", _NO_PERMITS, "pass"),
    Mutant("sinks/parts.py", "name != attempt.phase.name or (", "("),
    Mutant("sinks/parts.py", "holder > highest if", "False if"),
    Mutant("sinks/parts.py", "else holder != attempt.number)", "else False)"),
    Mutant("sinks/parts.py", "                    self._check_permit(attempt)\n", ""),
    Mutant("sinks/parts.py", "return before > 0", "return False"),
    Mutant("sinks/schema.py", "return any(set(unique) != set(key)", "return any(False"),
    Mutant("consumer/tasks.py", "if plain or not half[1] & Half.WRITE]", "if not half[1] & Half.WRITE]"),
    Mutant("consumer/tasks.py", "if plain or not half[1] & Half.WRITE]", "if False]"),
    Mutant("consumer/tasks.py", "elif self.again and plain:", "elif False:"),
    Mutant("consumer/writing.py", "if deletes else []", "if False else []"),
    Mutant("ordering/manifest.py", "if manifest.digest != accounts[manifest.task]:", "if False:"),
    Mutant("ordering/manifest.py", "if manifest.error is not None:", "if False:"),
    Mutant("ordering/manifest.py", "or came[task] != 1", ""),
    Mutant("consumer/writing.py", "        if report.deletes:", "        if False:"),
    Mutant("consumer/writing.py", "self.target.save(recorded,", "self.target.save(replace(recorded, window=None),"),
    Mutant("consumer/pipeline.py", "self.progress.window or self._planned(probe)", "self._planned(probe)"),
    Mutant("consumer/pipeline.py", "if recorded or window.to_end", "if window.to_end"),
    Mutant("consumer/pipeline.py", "self.target.save(after, self.lease, rows=spool, aside=aside)\n", "pass\n"),
    Mutant("consumer/scan.py", "elif new:\n                self._repeat", "else:\n                self._repeat"),
    Mutant("consumer/scan.py", "if ts < self._low:", "if ts <= self._low:"),
    Mutant("consumer/scan.py", "ended_early = ts > self._until", "ended_early = ts >= self._until"),
    Mutant("consumer/scan.py", "commit_ts < report.next_row_ts", "commit_ts > report.next_row_ts"),
    Mutant("consumer/progressing.py", "held += [", "held + ["),
    Mutant("consumer/progressing.py", "if partition not in ended:", "if True:"),
    Mutant("consumer/pipeline.py", "if recorded or window.to_end or (end", "if True or (end"),
    Mutant("consumer/pipeline.py", "(0 if window.rewound else duplicates_in(reports))", "0"),
    Mutant("consumer/source.py", "0 if memory is None else memory.looked_to", "0"),
    Mutant("consumer/source.py", "if bound == end.offset else None", ""),
    Mutant("consumer/source.py", "and not self._came_back(known, probes)", ""),
    Mutant("consumer/source.py", "ends |= self.control.written_ends(may_have_ended)", "pass"),
    Mutant("consumer/source.py", "self._check_kept(known, found)", "pass"),
    Mutant("consumer/source.py", "{p: self._starts[p] for p in begins}", "dict(begins)"),
    Mutant("consumer/continuity.py", "if ends[p].offset < at.offset:", "if False:"),
    Mutant("consumer/continuity.py", "if end is None or end < reached[p].offset:", "if end is None:"),
    Mutant("consumer/continuity.py", "if end is None or end <", "if end is not None and end <"),
    Mutant("consumer/continuity.py", "or times[p] + CLOCK_SLACK_MS > physical_ms(start_ts)", ""),
    Mutant("consumer/continuity.py", "if p not in times or", "if p in times and"),
    Mutant("consumer/reader.py", "if reached != (part.stop, taken):", "if False:"),
    Mutant("consumer/progressing.py", "known is None or known.is_unread", "known is None"),
    Mutant("consumer/pipeline.py", "found = added(self.progress, self.probe)", "found = self.progress"),
    Mutant("consumer/ledger.py", "covered & ~found", "covered & found"),
    Mutant("ordering/rewinding.py", "window=window,", "window=None,"),
    Mutant("consumer/pipeline.py", "return self.progress.window is not None or", "return False or"),
    Mutant("consumer/quarantine.py", "one.commit_ts is None or one.commit_ts <= checkpoint)", "True)"),
    Mutant("consumer/quarantine.py", "mode = Mode.SKIP if", "mode = Mode.SKIP if True or"),
    Mutant("consumer/quarantine.py", "if later > commit_ts:", "if later >= 0:"),
    Mutant("consumer/quarantine.py", "copy.position not in self._modes]", "not self._modes]"),
    Mutant("consumer/tolerant.py", "order & ~Half.WRITE", "order"),
    Mutant("consumer/tolerant.py", "if commit_ts > self._watched", "if commit_ts < self._watched"),
    Mutant("consumer/tolerant.py", "            self.report.deletes += 1\n", ""),
    Mutant("ordering/leadership.py", "self._since is None or sign != self._sign", "self._since is None"),
    Mutant("ordering/leadership.py", "if leased is False else", "if leased is None else"),
    Mutant("ordering/leadership.py", ">= limit", ">= 2 * limit"),
    Mutant("ordering/rewinding.py", "max(window.high, progress.checkpoint_ts)", "progress.checkpoint_ts"),
    Mutant("ordering/rewinding.py", "min(at.start, spans[p][0])", "at.start"),
    Mutant("ordering/rewinding.py", "        base_ts=to,\n", ""),
    Mutant("ordering/rewinding.py", "progress.executed | frozenset(executed)", "frozenset(executed)"),
    Mutant("ordering/rewinding.py", "        ledger=ledger,\n", ""),
    Mutant("ordering/copies.py", "ts <= self._watermark:", "ts < self._watermark:"),
    Mutant("ordering/copies.py", "if mark or known != in_pass else", "if False else"),
    Mutant("ordering/copies.py", "max(most, count))", "count)"),
    Mutant("ordering/copies.py", "max(count, most.get(key, 0))", "count + most.get(key, 0)"),
    Mutant("ordering/copies.py", "count if order & Half.WRITE else -count", "count"),
    Mutant("ordering/copies.py", "(behind and table not in self._again)", "behind"),
    Mutant("ordering/spread.py", "if not bounds or bounds[-1] != last_ts:", "if False:"),
    Mutant("ordering/spread.py", "if held or not bounds or sizes[-1] > 1:", "if held or not bounds:"),
    Mutant("ordering/spread.py", "key_hash % self.sizes[group]", "0"),
    Mutant("sinks/target.py", "            self._raise_epoch(changefeed)\n", ""),
    Mutant(
        "sinks/target.py", "if held is not None:\n                self._comp", "if False:\n                self._comp"
    ),
    Mutant("sinks/target.py", "            self._back_to_point()\n", ""),
    Mutant("sinks/target.py", "if epoch != lease.epoch:", "if False:"),
    Mutant(
        "sinks/target.py",
        "self._change_quarantine(lease.changefeed, aside)\n            self._save(progress, lease)\n            obs",
        "self._save(progress, lease)\n            obs",
    ),
    Mutant("sinks/target.py", "        self._end_writers(changefeed)", "        pass"),
)


def main() -> int:
    """Run all, or those whose file or text holds the argument; 1 if one survives."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    survivors = 0
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "tree"
        for folder in ("ordering", "sinks", "consumer", "tests"):
            shutil.copytree(ROOT / folder, copy / folder, ignore=_IGNORED)
        shutil.copy(ROOT / "pyproject.toml", copy)
        if tried(copy, UNCHANGED) != "SURVIVED":
            print("the suites fail without any mutant")
            return 2
        for mutant in MUTANTS:
            if wanted in f"{mutant.file} {mutant.old}":
                verdict = tried(copy, mutant)
                survivors += verdict != "caught"
                print(f"{verdict:9} {mutant.file}: {mutant.old!r} -> {mutant.new!r}", flush=True)
    return min(1, survivors)


def tried(copy: Path, mutant: Mutant) -> str:
    """`caught`, `SURVIVED`, or `gone` if the text is no longer there."""
    file = copy / mutant.file
    before = file.read_text()
    if mutant.old not in before:
        return "gone"
    file.write_text(before.replace(mutant.old, mutant.new))
    try:
        own = f"tests/ordering/test_{file.stem}.py"
        suites = [[*_PYTEST, own]] if (copy / own).exists() and "ordering/" in mutant.file else []
        return "caught" if any(fails(copy, suite) for suite in [*suites, _SCRIPTS, _HISTORIES]) else "SURVIVED"
    finally:
        file.write_text(before)


def fails(copy: Path, suite: list[str]) -> bool:
    """Whether a suite fails, or does not end."""
    try:
        done = subprocess.run(
            [sys.executable, "-B", *suite], cwd=copy, env=_ENVIRONMENT, capture_output=True, timeout=600, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
