"""`python -m tests.bench.goals`: all goals of speed, one command after the other; a file of results, a table from it.

The commands are those that anybody can run by themselves (COMMANDS). Run nothing else meanwhile: it takes half an hour.
`--only` measures some of them again and keeps the other results. `--table` prints the table of the last results, which
docs/performance.md holds. Figures against Flink come from the results of `python -m tests.bench.peers`.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.peers.__main__ import RESULTS as PEERS

RESULTS = Path(__file__).with_name("goals.json")
COMMANDS = {
    "usual": "tests.bench --json --runs 3 --limits",
    "ddls": "tests.bench --json --runs 3 --ddls 100",
    "large": "tests.bench --json --runs 2 --events 8000000",
    "shop": "tests.bench --json --runs 2 --load shop",
    "many": "tests.bench --json --load many",
    "encoding": "tests.bench.encoding",
    "bulk-mysql": "tests.bench.bulk --target mysql --runs 2",
    "bulk-postgresql": "tests.bench.bulk --target postgresql --runs 2",
    "live-2000": "tests.bench.latency --rate 2000 --seconds 60",
    "live-10000": "tests.bench.latency --rate 10000 --seconds 60",
    "idle": "tests.bench.latency --rate 0 --warm-seconds 60 --seconds 60",
}
"""By name: what follows `python -m`; each prints lines of JSON."""
Line = dict[str, Any]
Results = Mapping[str, Sequence[Line]]
"""The lines that each command printed; `peers`: the runs of `tests.bench.peers`."""


@dataclass(frozen=True)
class Row:
    """A line of the table. `figure` raises KeyError if its commands were not measured."""

    what: str
    goal: str
    command: str
    figure: Callable[[Results], str]


def _median(lines: Sequence[Line], key: str, **of: object) -> float:
    return median(float(line[key]) for line in lines if all(line.get(name) == value for name, value in of.items()))


def _against_flink(key: str) -> Callable[[Results], str]:
    def figure(results: Results) -> str:
        ratios = (
            _median(results["peers"], key, target=target, who="flink")
            / _median(results["peers"], key, target=target, who="ours")
            for target in ("mysql", "postgresql")
        )
        return " and ".join(f"{ratio:.1f}" for ratio in ratios)

    return figure


def _ours(key: str, unit: str, form: str = ".1f") -> Callable[[Results], str]:
    def figure(results: Results) -> str:
        found = (_median(results["peers"], key, target=t, who="ours") for t in ("mysql", "postgresql"))
        return " and ".join(f"{one:{form}}" for one in found) + f" {unit}"

    return figure


def _reading(results: Results) -> str:
    return f"{median(line['ratio'] for line in results['usual'] if 'ratio' in line):.2f}"


def _with_ddls(results: Results) -> str:
    usual = _median([line for line in results["usual"] if "wall_s" in line], "processing_s")
    own = median(line["processing_s"] - line["ddl_s"] for line in results["ddls"])
    return f"{own / usual:.2f} ({_median(results['ddls'], 'processing_s') / usual:.2f} with their time)"


def _an_event(results: Results) -> str:
    runs = [line for name in ("usual", "large") for line in results[name] if "wall_s" in line]
    few, many = (
        median(line["processing_s"] / line["events"] for line in runs if (line["events"] > 1_000_000) is is_large)
        for is_large in (False, True)
    )
    return f"{many / few:.2f}"


def _encoded(results: Results) -> str:
    return " and ".join(f"{line['core_us']:.2f}" for line in results["encoding"]) + " µs"


def _bulk(results: Results) -> str:
    """`snapshot` and `row` with two writers, against the bulk load on as many connections."""
    found = []
    for target, verb in (("mysql", "LOAD DATA"), ("postgresql", "COPY")):
        rates = results[f"bulk-{target}"]
        for what, connections in (("snapshot", 1), ("row, writers=2", 2)):
            bulk = _median(rates, "rows_per_s", what=f"{verb}, connections={connections}")
            found.append(f"{_median(rates, 'rows_per_s', what=what) / bulk:.2f}")
    return "{} and {} (MariaDB), {} and {} (PostgreSQL)".format(*found)


def _two_writers(results: Results) -> str:
    rates = (results[f"bulk-{target}"] for target in ("mysql", "postgresql"))
    ratios = (
        _median(lines, "rows_per_s", what="row, writers=2") / _median(lines, "rows_per_s", what="snapshot")
        for lines in rates
    )
    return " and ".join(f"{ratio:.2f}" for ratio in ratios)


def _seconds(name: str) -> Callable[[Results], str]:
    def figure(results: Results) -> str:
        return f"{_median(results[name], 'processing_s'):.1f} s ({_median(results[name], 'ddl_s'):.1f} s of it DDLs)"

    return figure


def _live(results: Results) -> str:
    found = (results[f"live-{rate}"][0] for rate in (2000, 10000))
    return ", ".join(f"{line['p50_ms']} and {line['p99_ms']} ms" for line in found)


def _idle(results: Results) -> str:
    return f"{results['idle'][0]['cpu_percent']:.1f} %"


ROWS = (
    Row("processing, how many times as fast as Flink", "7 and 4.5", "peers", _against_flink("processing_s")),
    Row("wall, from the command to the last row, likewise", "4 and 2.8", "peers", _against_flink("wall_s")),
    Row("CPU of all processes", "7.5 s", "peers", _ours("cpu_s", "s")),
    Row("memory of all processes", "1,000 MB", "peers", _ours("peak_mb", "MB", ",.0f")),
    Row("start of `run`, until it begins to read", "3 s", "usual", lambda results: f"{_start(results):.1f} s"),
    Row("100 DDLs spread over the load, against none, without their own time", "1.3", "ddls", _with_ddls),
    Row("reading, decoding and reducing, against reading alone with confluent-kafka", "1.1", "usual", _reading),
    Row("ordering and encoding a net row", "0.7 µs", "encoding", _encoded),
    Row("insert-only, `snapshot` and `row`, against bulk load", "0.75, 0.5", "bulk-mysql", _bulk),
    Row("`row` with two writers, against `snapshot`, insert-only", "1.3", "bulk-mysql", _two_writers),
    Row("8,000,000 events over 800,000 rows, an event, against 1,000,000 over 100,000", "1.15", "large", _an_event),
    Row("40 tables, transactions of 1 and of 1,000 rows", "-", "shop", _seconds("shop")),
    Row("1,000 tables", "-", "many", _seconds("many")),
    Row("latency at 2,000 and at 10,000 events/s, median and 99 %", "200 and 400 ms", "live-2000", _live),
    Row("CPU of a changefeed at rest, of one core", "1 %", "idle", _idle),
)


def _start(results: Results) -> float:
    return _median([line for line in results["usual"] if "start_s" in line], "start_s")


def table_of(results: Results) -> str:
    """The table in Markdown; what was not measured is left out."""
    lines = ["| what | goal | measured | `python -m` |", "|---|---|---|---|"]
    for row in ROWS:
        try:
            figure = row.figure(results)
        except KeyError:
            continue
        command = COMMANDS.get(row.command, f"tests.bench.{row.command}")
        lines.append(f"| {row.what} | {row.goal} | {figure} | `{command}` |")
    return "\n".join(lines)


def kept() -> Results:
    """The last results."""
    runs = {"peers": json.loads(PEERS.read_text())["runs"]}
    return runs | {name: told["lines"] for name, told in _recorded().items()}


def _recorded() -> dict[str, Any]:
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}


def _measured(name: str) -> dict[str, object]:
    """Run a command. Raises CalledProcessError if it fails, ValueError if a table was wrong."""
    command = [sys.executable, "-m", *COMMANDS[name].split()]
    begun = os.getloadavg()[0]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = [json.loads(line) for line in told.splitlines()]
    if not all(line.get("correct", True) for line in lines):
        raise ValueError(f"{name}: a table is wrong")
    return {"date": datetime.now(UTC).date().isoformat(), "loadavg": round(begun, 2), "lines": lines}


def main(words: Sequence[str] | None = None) -> int:
    """Measure, keep the results after each command, print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.goals", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--table", action="store_true", help="only print the table of the last results")
    told = parser.parse_args(words)
    for name in [] if told.table else told.only:
        RESULTS.write_text(json.dumps(_recorded() | {name: _measured(name)}, indent=1) + "\n")
        print(f"{name}: {COMMANDS[name]}", file=sys.stderr, flush=True)
    print(table_of(kept()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
