"""See the package's docstring. Exit code 1 if a target differed from upstream, or stopped for no known reason."""

import argparse
import logging
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pymysql
import structlog

from tests.differential.explained import why
from tests.differential.playing import Place, Verdict
from tests.differential.recording import Recorder, Recording, kept, kept_in
from tests.differential.shrinking import smallest
from tests.differential.vetting import Vetting
from tests.differential.writing import BLOCK, Script, zone_of
from tests.embedded import TidbServer

_MEMORY = Path("/dev/shm")


@dataclass(slots=True)
class Tally:
    """What came of all scripts: counted, and told where it is new."""

    recorder: Recorder
    keep: Path | None
    shrunk: int
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    found: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add(self, place: Place, consistency: str, recording: Recording, verdict: Verdict) -> None:
        """Count a verdict. Of what nobody explains the first ones of a kind are made small and printed."""
        known = why(place.kind, verdict, recording.statements)
        self.counts[place.kind, consistency, f"{verdict.what} (explained)" if known else verdict.what] += 1
        if known:
            self.explained[f"{place.kind}: {known}"] += 1
        if known or verdict.what == "as upstream":
            return
        # what other cells have in common is not seen; stops say it
        key = place.kind, verdict.what, "" if verdict.silent else verdict.reason
        self.found[key] += 1
        if self.found[key] <= (self.shrunk if verdict.silent else 1):
            self._tell(place, consistency, recording, verdict)
        elif verdict.silent:
            print(f"== seed {recording.seed} {place.kind} {consistency} SILENT: {verdict.said[:300]}", flush=True)

    def _tell(self, place: Place, consistency: str, recording: Recording, verdict: Verdict) -> None:
        small, last = self._smallest(place, consistency, recording, verdict)
        text = "".join(f"{statement};\n" for statement in small)
        head = f"seed {recording.seed} {place.kind} {consistency} {recording.zone} {last.what}: {last.said[:600]}"
        print(f"== {head}\n{text}", flush=True)
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            name = f"{last.what.lower()}-{place.kind}-{recording.seed}.sql"
            (self.keep / name).write_text(f"-- {head}\n{text}")

    def _smallest(
        self, place: Place, consistency: str, recording: Recording, verdict: Verdict
    ) -> tuple[Sequence[str], Verdict]:
        last = verdict
        begins = recording.statements.index(f"USE s{recording.seed}") + 1

        def fails(some: Sequence[str]) -> bool:
            nonlocal last
            scripts = {recording.seed: [*recording.statements[:begins], *some]}
            for one in self.recorder.recorded(scripts, recording.zone):
                found = place.play(one, consistency)
                is_like = found.what == verdict.what and (verdict.silent or found.reason == verdict.reason)
                last = found if is_like else last
                return bool(is_like)
            return False

        small = (
            smallest(recording.statements[begins:], fails)
            if self.shrunk and self.recorder.program
            else recording.statements[begins:]
        )
        return [*recording.statements[:begins], *small], last

    def summary(self, minutes: float) -> Iterator[str]:
        """Lines."""
        for (kind, consistency, what), times in sorted(self.counts.items()):
            yield f"{kind} {consistency}: {times} {what}"
        yield from (f"explained {times} times: {text}" for text, times in sorted(self.explained.items()))
        yield from (f"FOUND {times} times: {' '.join(key)}" for key, times in sorted(self.found.items()))
        for kind in sorted({kind for kind, *_ in self.counts}):
            played = sum(times for key, times in self.counts.items() if key[0] == kind)
            yield f"{kind}: {played} scripts, {played / minutes:.0f} per minute"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as many scripts as asked for."""
    asked = _asked(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="differential-", dir=_MEMORY if _MEMORY.is_dir() else None)
        place = Path(stack.enter_context(made))
        place.chmod(0o755)
        recorder, shrinking = (Recorder(asked.recorder, _made(place / name)) for name in ("recorder", "shrinking"))
        recorder.kept = asked.recordings
        places = [
            Place(kind, place / kind, stack, asked.together, asked.killed_at) for kind in asked.targets.split(",")
        ]
        tally = Tally(shrinking, asked.keep, asked.shrink)
        begun = time.monotonic()
        for recordings in _recorded(asked, recorder, place / "upstream", stack):
            consistencies = asked.consistencies.split(",")
            # by turns, for which consistency it is decides about rows and hardly about DDL
            consistency = consistencies[recordings[0].seed // BLOCK % len(consistencies)] if recordings else ""
            for target in places:
                for recording, verdict in target.play_all(recordings, consistency):
                    tally.add(target, consistency, recording, verdict)
    print("\n".join(tally.summary((time.monotonic() - begun) / 60)))
    print(_spent(sum(tally.counts.values())), f"{sum(one.kills for one in places)} kills", sep=", ")
    print(f"{len(recorder.refused)} scripts not taken upstream", *recorder.refused[:20], sep="\n  ")
    return 1 if tally.found else 0


def _spent(plays: int) -> str:
    """What all of it cost: this process, the recorder and the servers, which have ended."""
    spent = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in spent)
    return f"{seconds:.0f} s of CPU, {plays} plays: {plays / max(seconds, 1) * 60:.0f} per minute of a core"


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--recorder", default="", help="without one what --recordings holds is played")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1_000_000_000)
    parser.add_argument("--minutes", type=float, default=1e9, help="no new block of scripts after that")
    parser.add_argument("--targets", default="sqlite,mariadb,postgres,tidb")
    parser.add_argument("--consistencies", default="snapshot,transaction,row")
    parser.add_argument("--together", type=int, default=1, help="scripts that one changefeed plays")
    parser.add_argument("--killed-at", type=float, default=0.0, help="how likely a driver dies at a step")
    parser.add_argument("--shrink", type=int, default=10, help="silent ones per target that are made small")
    parser.add_argument("--recordings", type=Path, help="recordings are kept there, and used again")
    parser.add_argument("--keep", type=Path, help="what was found is written there")
    return parser.parse_args(arguments)


def _recorded(
    asked: argparse.Namespace, recorder: Recorder, upstream: Path, stack: ExitStack
) -> Iterator[list[Recording]]:
    """The recordings of all blocks; while one is played the next one is recorded."""
    limit, end = time.monotonic() + asked.minutes * 60, asked.seed + asked.count
    if not asked.recorder:
        for path in kept_in(asked.recordings):
            if time.monotonic() < limit:
                yield [one for one in kept(path) if asked.seed <= one.seed < end]
        return
    vetting = _vetting(_made(upstream), stack)
    pool = stack.enter_context(ThreadPoolExecutor(1))
    waiting = None
    first = asked.seed
    while first < end and time.monotonic() < limit:
        last = min(end, (first // BLOCK + 1) * BLOCK)
        following = pool.submit(_written, recorder, vetting, range(first, last))
        if waiting is not None:
            yield waiting.result()
        waiting, first = following, last
    if waiting is not None:
        yield waiting.result()


def _written(recorder: Recorder, vetting: Vetting, seeds: range) -> list[Recording]:
    return recorder.recorded({seed: Script(seed, vetting).written() for seed in seeds}, zone_of(seeds[0]))


def _vetting(directory: Path, stack: ExitStack) -> Vetting:
    address = urlsplit(stack.enter_context(TidbServer(directory)).uri)
    connection = pymysql.connect(host=address.hostname, port=address.port, user="root", autocommit=True)
    return Vetting(stack.enter_context(connection).cursor())


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


if __name__ == "__main__":
    sys.exit(main())
