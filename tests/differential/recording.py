"""Records many scripts in one run of the recorder, and takes the messages apart again.

The recorder embeds a TiDB: it starts in a second, and a script takes a tenth of that. Each script has a database of its
own, named by its seed, and its commits lie between its CREATE DATABASE and the next one's.
"""

import gzip
import hashlib
import json
import os
import re
import subprocess
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.demo.fake_ticdc.producer import vector_messages
from ordering.errors import ReconcilerError
from tests.service.cells import Oracle

_SINK = "kafka://127.0.0.1:9092/ticdc?protocol=canal-json&enable-tidb-extension=true&partition-num=3"
_PARTITIONS = 3
_QUICKER = ("SET GLOBAL tidb_enable_stmt_summary = OFF",)
"""A fifth of the recorder's time goes into digests of what it runs."""
_BEGINS = re.compile(r"CREATE DATABASE `s(\d+)`")
_OWN = re.compile(r"s(\d+)[a-z]?\.")
_REFUSED = re.compile(r"panic: (.*?);?: \[", re.DOTALL)
_RESET = ("SET sql_mode = DEFAULT", "SET NAMES utf8mb4", "SET time_zone = '+00:00'")
"""Of the session, which all scripts share; the dump shows TIMESTAMPs in its zone."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One script: what it sends, and what upstream holds afterwards."""

    seed: int
    zone: str
    statements: tuple[str, ...]
    messages: list[Message]
    upstream: Oracle


@dataclass(slots=True)
class Recorder:
    """`program` as in `tests.histories`; `kept`: a directory of recordings that are used again."""

    program: str
    place: Path
    kept: Path | None = None
    refused: list[str] = field(default_factory=list)
    """What the recorder did not take: its words, a line for each script that was left out."""

    def recorded(self, scripts: Mapping[int, Sequence[str]], zone: str) -> list[Recording]:
        """The scripts' recordings, without those that upstream does not take."""
        path = self._path_of(scripts, zone)
        if path is not None and path.exists():
            return kept(path)
        found = self._run(dict(scripts), zone)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress("".join(map(_packed, found)).encode(), 1))
        return found

    def _path_of(self, scripts: Mapping[int, Sequence[str]], zone: str) -> Path | None:
        if self.kept is None:
            return None
        digest = hashlib.sha256(repr((sorted(scripts.items()), zone)).encode()).hexdigest()[:12]
        return self.kept / f"{min(scripts, default=0)}-{digest}.jsonl.gz"

    def _run(self, scripts: dict[int, Sequence[str]], zone: str) -> list[Recording]:
        """Without the scripts that stop the recorder: it names the statement, else they are found by halves."""
        while scripts:
            said = self._tried(scripts, zone)
            if not said:
                return self._apart(scripts, zone)
            named = _REFUSED.search(said)
            guilty = [s for s, statements in scripts.items() if named and named[1] in statements]
            if not guilty and len(scripts) > 1:
                middle = sorted(scripts)[len(scripts) // 2]
                halves = ({s: t for s, t in scripts.items() if (s < middle) == first} for first in (True, False))
                return [one for half in halves for one in self._run(half, zone)]
            for seed in guilty or list(scripts):
                self.refused.append(f"seed {seed}: {said.splitlines()[0][:300]}")
                del scripts[seed]
        return []

    def _tried(self, scripts: Mapping[int, Sequence[str]], zone: str) -> str:
        """What the recorder says; nothing if it took everything."""
        lines = [line for seed in sorted(scripts) for line in (*_RESET, *scripts[seed])]
        (self.place / "batch.sql").write_text("".join(f"{line};\n" for line in (*_QUICKER, *lines, *_RESET)))
        command = [
            *(self.program, "-script", str(self.place / "batch.sql"), "-out", str(self.place / "batch.jsonl")),
            *("-dump", str(self.place / "batch.json"), "-sink-uri", _SINK, "-tz", zone, "-no-watermark-before-ddl"),
            *("-shuffle", str(min(scripts))),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={"GOGC": "400", **os.environ})
        return (done.stderr or "it failed") if done.returncode else ""

    def _apart(self, scripts: Mapping[int, Sequence[str]], zone: str) -> list[Recording]:
        messages = list(vector_messages(self.place / "batch.jsonl"))
        bodies = [json.loads(message.value) for message in messages]
        begins = sorted((_ts(b), int(m[1])) for b in bodies if b["isDdl"] and (m := _BEGINS.fullmatch(b["sql"])))
        if [seed for _, seed in begins] != sorted(scripts):
            raise ReconcilerError(f"the recorder sent {len(begins)} of {len(scripts)} scripts", where=str(self.place))
        parts: dict[int, list[Message]] = {seed: [] for seed in scripts}
        starts = [ts for ts, _ in begins]
        for message, body in zip(messages, bodies, strict=True):
            parts[begins[max(bisect_right(starts, _ts(body)) - 1, 0)][1]].append(message)
        marks = [m for m, b in zip(messages, bodies, strict=True) if b["type"] == "TIDB_WATERMARK"][-_PARTITIONS:]
        states = self._states(scripts)
        last = begins[-1][1]
        return [
            Recording(s, zone, tuple(scripts[s]), parts[s] + (marks if s != last else []), states[s]) for _, s in begins
        ]

    def _states(self, scripts: Mapping[int, Sequence[str]]) -> dict[int, dict[str, Any]]:
        states: dict[int, dict[str, Any]] = {seed: {} for seed in scripts}
        for name, table in json.loads((self.place / "batch.json").read_text()).items():
            if own := _OWN.match(name.lower()):
                states[int(own[1])][name] = table
        return states


def _ts(body: Mapping[str, Any]) -> int:
    """When a message was committed; a watermark at its own time belongs to what lies before it."""
    own = body["_tidb"]
    return int(own["commitTs"] if "commitTs" in own else own["watermarkTs"])


def _packed(one: Recording) -> str:
    messages = [[m.topic, m.partition, m.value.decode()] for m in one.messages]
    return json.dumps([one.seed, one.zone, one.statements, messages, one.upstream], ensure_ascii=False) + "\n"


def kept(path: Path) -> list[Recording]:
    """What a file of `--recordings` holds."""
    return [_unpacked(line) for line in gzip.decompress(path.read_bytes()).decode().split("\n") if line]


def kept_in(directory: Path) -> list[Path]:
    """The files of `--recordings`, by their seeds."""
    return sorted(directory.glob("*.jsonl.gz"), key=lambda path: int(path.name.partition(".")[0].partition("-")[0]))


def _unpacked(line: str) -> Recording:
    seed, zone, statements, messages, upstream = json.loads(line)
    return Recording(seed, zone, tuple(statements), [Message(t, p, v.encode()) for t, p, v in messages], upstream)
