"""The recordings once more as files of the storage sink: every recording ends as TiCDC's upstream ended, cell by cell.

`tests.storage_files` writes the files. Run again, nothing changes; written a second time, nothing changes either.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from consumer.pipeline.round import Round
from consumer.pipeline.session import Session
from consumer.run.runner import RunOutcome
from consumer.source.port import source_of
from consumer.wiring import readers_of, target_of
from ordering.errors import ReconcilerError
from sinks.steps import Observer
from tests.service.cells import differences, oracle
from tests.service.lab import Feed, is_row, recorded
from tests.service.local import LocalFeed
from tests.service.messages import ddl, watermark
from tests.service.rows.test_simple_vectors import CONSISTENCIES, MORE
from tests.service.rows.test_vectors import EVERYWHERE, SMALL, WITHOUT_NUL
from tests.simulation.jobs import LocalJobs
from tests.simulation.log import FakeLog
from tests.storage_files import CsvOptions, Storage, write

pytestmark = pytest.mark.service

CSV: tuple[CsvOptions, ...] = (
    CsvOptions(), CsvOptions(old_value=True), CsvOptions(header=True),
    CsvOptions(binary="hex", header=True, old_value=True),
    CsvOptions(delimiter="|;", quote=""), CsvOptions(quote="'", null="NULL"),
)  # fmt: skip
LAYOUTS: tuple[dict[str, Any], ...] = (
    {}, {"date": ""}, {"ids": True}, {"date": "2026-01", "digits": 6, "rows": 7},
    {"dispatcher": "6b9d1c8e-2b7a-4d43-9d6a-0a1b2c3d4e5f"}, {"partitions": 3}, {"partitions": 2, "date": ""},
)  # fmt: skip
NAMES = (*EVERYWHERE, *MORE)
CASES = [
    *((name, "sqlite", CONSISTENCIES[i % 3]) for i, name in enumerate(NAMES)),
    *((name, "mariadb", CONSISTENCIES[(i + 1) % 3]) for i, name in enumerate(NAMES)),
    *((name, "postgres", CONSISTENCIES[i % 3]) for i, name in enumerate(WITHOUT_NUL)),
]
WHOLE = [
    *product((*SMALL, *MORE), ("sqlite", "mariadb"), CONSISTENCIES),
    *product(WITHOUT_NUL, ("postgres",), CONSISTENCIES),
]
REST = [pytest.param(*case, marks=pytest.mark.soak) for case in dict.fromkeys(WHOLE) if case not in CASES]


@dataclass
class Readers(FakeLog):
    """`FakeLog` for jobs that read files."""

    get: Callable[[], Any] = field(default=lambda: None)


def once(feed: Feed, observe: Observer = lambda _: None) -> RunOutcome:
    """As `LocalFeed.once`, from files."""
    if not isinstance(feed, LocalFeed):
        return feed.once(observe)
    source, target, log = source_of(feed.config), target_of(feed.config), FakeLog()
    log.get = readers_of(feed.config).get  # type: ignore[method-assign]
    with closing(target):
        target.connect()
        session = Session(feed.config, source, target, LocalJobs(log, buckets=2, tasks=2), observe)
        before = session.progress.counts
        with closing(session.ledger):
            while Round(session).run(to_end=True):
                pass
        return RunOutcome(before, session.progress.counts, session.progress.checkpoint_ts)


def reading(feed: Feed, root: Path, csv: CsvOptions | None = None) -> Feed:
    """The feed with files as its source."""
    feed.settings["source"] = {"storage": f"file://{root}", "bootstrap-servers": None, "topics": None}
    return feed.with_(source={"protocol": "csv", "csv": csv.section()}) if csv else feed


def applied(feed: Feed, recording: str, root: Path, steps: int = 1, **layout: Any) -> None:
    """Write a recording, run, and compare; then run again, and once more after all of it was written again."""
    messages = recorded(recording)
    upstream, rows = oracle(recording.split(".", maxsplit=1)[0]), sum(map(is_row, messages))
    csv = layout.get("csv")
    reading(feed, root, csv)
    for number, files in enumerate(Storage(messages, **layout).steps()):
        write(files, root)
        if number < steps - 1:
            once(feed)
    first = once(feed)
    assert differences(upstream, feed.cells) == []
    assert csv or first.counts.events == rows
    idle = once(feed)
    assert (idle.counts, idle.checkpoint_ts) == (first.counts, first.checkpoint_ts)


@pytest.mark.cells(by_turns=(("feed", "consistency"), "recording"))
@pytest.mark.parametrize(("recording", "feed", "consistency"), [*dict.fromkeys(CASES), *REST], indirect=["feed"])
def test_recordings(feed: Feed, recording: str, consistency: str, tmp_path: Path) -> None:
    if recording.startswith("types-without-nul"):
        feed.with_(target={"invalid-dates": "null"})
    number = sum(map(ord, recording + consistency))
    csv = None if number % 2 else CSV[number // 2 % len(CSV)]
    if recording.startswith(("types", "split.only", "split.content", "split.delete")) and "content" in recording:
        csv = None  # names of members, which CSV makes of numbers
    feed.with_(target={"consistency": consistency})
    applied(feed, recording, tmp_path / "files", steps=1 + number % 5 * 3, csv=csv, **LAYOUTS[number % len(LAYOUTS)])


@pytest.mark.by_turns
@pytest.mark.spark
@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_recordings_through_spark(feed: Feed, tmp_path: Path) -> None:
    applied(feed, "ddl-basic.restarts", tmp_path / "files", steps=3, csv=CsvOptions(old_value=True))


@pytest.mark.by_turns
@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
@pytest.mark.parametrize("csv", [None, CsvOptions()])
def test_rows_that_are_written_again_are_dropped(feed: Feed, csv: CsvOptions | None, tmp_path: Path) -> None:
    applied(feed, "bank.index-value.restarts", tmp_path, csv=csv)
    before = once(feed).counts
    files = sorted(tmp_path.rglob("CDC0*"))
    last = Counter(path.parent for path in files)
    for path in files:
        number = last[path.parent] + int(path.stem.removeprefix("CDC"))
        shutil.copyfile(path, path.with_name(f"CDC{number:020d}{path.suffix}"))
    metadata = json.loads((tmp_path / "metadata").read_text())
    (tmp_path / "metadata").write_text(json.dumps({"checkpoint-ts": metadata["checkpoint-ts"] + 1}))
    again = once(feed)
    assert differences(oracle("bank"), feed.cells) == []
    assert again.counts.rows_written == before.rows_written
    assert again.counts.duplicates_unproven > before.duplicates_unproven
    assert again.checkpoint_ts == metadata["checkpoint-ts"] + 1


@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_a_filter_about_the_old_row_is_refused_where_files_do_not_tell_it(feed: Feed, tmp_path: Path) -> None:
    reading(feed, tmp_path, CsvOptions())
    feed.with_(filter={"event-filters": [{"matcher": ["*.*"], "ignore-update-old-value-expr": "bal = 7"}]})
    for files in Storage(recorded("bank.index-value.split"), csv=CsvOptions()).steps():
        write(files, tmp_path)
    with pytest.raises(ReconcilerError, match="does not tell the row before it"):
        once(feed)


@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_files_of_ddls_alone_are_applied(feed: Feed, consistency: str, tmp_path: Path) -> None:
    sqls = ["CREATE TABLE `t` (`id` INT PRIMARY KEY)", "ALTER TABLE `t` ADD COLUMN `v` INT"]
    messages = [
        ddl("d.t", number, sql, kind) for number, sql, kind in zip((1, 2), sqls, ("CREATE", "ALTER"), strict=True)
    ]
    reading(feed, tmp_path).with_(target={"consistency": consistency})
    feed.make_database("d", "SELECT 1")
    for files in Storage([*messages, watermark(9, 0)]).steps():
        write(files, tmp_path)
    assert once(feed).counts.ddls == len(sqls)
    assert feed.cells.tables(["d"])["d.t"][0] == ["id", "v"]
