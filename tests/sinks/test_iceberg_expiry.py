"""Expiry keeps every read as of a TSO that it promises, and deletes what nothing names; a leader goes on beside it."""

import os
import shutil
import time
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from consumer.cli.main import main
from consumer.wiring import target_of
from ordering.errors import TargetUnreachableError
from sinks.iceberg import expiry
from sinks.iceberg.files import LakeFiles
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, insert, update, watermarks
from tests.sinks.iceberg_cells import IcebergCells
from tests.sinks.iceberg_moments import files_of

LAST = 12


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> LocalFeed:
    """Two tables, one changed in each window, the other in every third. A copy is kept: files name their place."""
    place = tmp_path_factory.mktemp("lake") / "now"
    place.mkdir()
    catalog = place / "catalog.db"
    uri = f"iceberg+sqlite:///{catalog}?warehouse={place / 'warehouse'}"
    feed = LocalFeed.into(uri, IcebergCells(catalog), place)
    feed.send([*begun(), *begun("d.u")[1:]])
    feed.once()
    for number in range(4, LAST + 1):
        rare = [insert("d.u", number, id=number, v=number, s="u")] if number % 3 == 0 else []
        feed.send([update("d.t", number, {"v": 0}, id=1, v=number, s="one"), *rare, *watermarks(number)])
        feed.once()
    shutil.copytree(place, place.with_name("kept"))
    return feed


@pytest.fixture
def feed(grown: LocalFeed) -> LocalFeed:
    """The tables as they were made, whatever tests have done to them."""
    shutil.rmtree(grown.directory)
    shutil.copytree(grown.directory.with_name("kept"), grown.directory)
    cells = IcebergCells(grown.directory / "catalog.db")
    return replace(grown, cells=cells, log_of_messages=deepcopy(grown.log_of_messages))


def reads(feed: LocalFeed, since: int) -> list[object]:
    """What both tables show as of each TSO from one on."""
    cells: IcebergCells = feed.cells  # type: ignore[assignment]
    history = {name: list(cells.history(name)) for name in ("d.t", "d.u")}
    return [
        {
            name: next((rows for ts, rows in reversed(states) if ts <= at(number)), None)
            for name, states in history.items()
        }
        for number in range(since, LAST + 1)
    ]


def expire(feed: LocalFeed, since: int) -> expiry.Expired:
    target = target_of(feed.config)
    try:
        return expiry.expire(target.session.db, since)
    finally:
        target.close()


def age(feed: LocalFeed) -> None:
    for path in files_of(feed):
        os.utime(path, (0, 0))


@pytest.mark.parametrize("since", [3, 4, 5, 8, 11, LAST, LAST + 5])
def test_reads_from_the_moment_on_stay_and_files_go(feed: LocalFeed, since: int) -> None:
    before, count = reads(feed, since), len(files_of(feed))
    age(feed)
    found = expire(feed, at(since))
    assert reads(feed, since) == before
    assert found.snapshots == 0 if since == 3 else found.snapshots > 0
    assert found.files > 0 if found.snapshots else len(files_of(feed)) >= count
    assert feed.cells.tables(["d"])["d.t"][1] == [{"id": 1, "v": LAST, "s": "one"}]
    again = expire(feed, at(since))
    assert (again.snapshots, again.files) == (0, 0)


def test_young_files_stay(feed: LocalFeed) -> None:
    assert expire(feed, at(LAST)).snapshots > 0
    count = len(files_of(feed))
    assert expire(feed, at(LAST)).files == 0
    assert len(files_of(feed)) == count


def test_what_a_crash_left_goes(feed: LocalFeed) -> None:
    left = next(path.parent for path in files_of(feed) if path.suffix == ".parquet") / "left-by-a-crash.parquet"
    left.write_bytes(b"PAR1")
    os.utime(left, (0, 0))
    assert expire(feed, 0).files == 1
    assert not left.exists()


def test_a_clock_that_jumps_ahead_deletes_no_file_that_is_being_written(
    feed: LocalFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send([insert("d.t", LAST + 1, id=5, v=5, s="five"), *watermarks(LAST + 1)])
    sync, met = LakeFiles.sync, [False]

    def synced(self: LakeFiles) -> None:
        sync(self)
        if not met[0]:
            met[0] = True
            now = time.time()
            with monkeypatch.context() as patch:
                patch.setattr(time, "time", lambda: now + 10 * expiry.YOUNGEST_S)
                assert expire(feed, 0).files == 0

    monkeypatch.setattr(LakeFiles, "sync", synced)
    feed.apply()
    assert met[0]
    assert sorted(row["id"] for row in feed.cells.tables(["d"])["d.t"][1]) == [1, 5]


def test_a_window_that_meets_the_command_is_done_again(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.send([insert("d.t", LAST + 1, id=5, v=5, s="five"), *watermarks(LAST + 1)])
    sync, met = LakeFiles.sync, [False]

    def synced(self: LakeFiles) -> None:
        sync(self)
        if not met[0]:
            met[0] = True
            assert expire(feed, at(LAST)).snapshots > 0

    monkeypatch.setattr(LakeFiles, "sync", synced)
    assert "another writer has changed table d.t" in feed.failing().fact
    feed.once()
    assert sorted(row["id"] for row in feed.cells.tables(["d"])["d.t"][1]) == [1, 5]


def test_a_failure_leaves_all_as_it_was(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    before = reads(feed, 3)

    def fail(_: LakeFiles) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(LakeFiles, "sync", fail)
        with pytest.raises(TargetUnreachableError, match="No space"):
            expire(feed, at(LAST))
    assert reads(feed, 3) == before


def test_the_command(feed: LocalFeed, tmp_path: Path) -> None:
    config = tmp_path / "lake.toml"
    config.write_text(
        f'changefeed = "{feed.name}"\n[source]\nbootstrap-servers = "h:1"\ntopics = ["t"]\n'
        f'[target]\nuri = "{feed.uri}"\n'
    )
    shown = CliRunner().invoke(main, ["expire", str(config), "--keep-hours", "0"])
    assert shown.exit_code == 0, shown.output
    assert "12 snapshots of 2 tables expired, 0 files of 0 bytes deleted" in shown.output
    config.write_text(config.read_text().replace("iceberg+sqlite", "sqlite").partition("?")[0] + '"\n')
    shown = CliRunner().invoke(main, ["expire", str(config)])
    assert shown.exit_code == 2


def test_the_slowest_changefeed_of_the_catalog_counts(feed: LocalFeed, tmp_path: Path) -> None:
    """What another one has still to write is read as of TSOs that lie far below this one's checkpoint."""
    slow = LocalFeed.into(feed.uri, feed.cells, tmp_path)
    assert slow.name != feed.name
    slow.send([*begun("e.t"), *watermarks(5)])
    slow.once()
    before = reads(feed, 5)
    config = tmp_path / "lake.toml"
    for name, snapshots in ((feed.name, "2 snapshots"), (slow.name, "0 snapshots")):
        config.write_text(
            f'changefeed = "{name}"\n[source]\nbootstrap-servers = "h:1"\ntopics = ["t"]\n'
            f'[target]\nuri = "{feed.uri}"\n'
        )
        shown = CliRunner().invoke(main, ["expire", str(config), "--keep-hours", "0"])
        assert shown.exit_code == 0, shown.output
        assert f"{snapshots} of 3 tables expired" in shown.output
        assert ("further behind" in shown.output) is (name == feed.name)
        assert reads(feed, 5) == before


@pytest.mark.parametrize("command", [["load", "--dump", "/nowhere"], ["verify", "--replay"], ["prove"]])
def test_commands_that_do_not_read_iceberg_say_so_before_they_do_anything(
    feed: LocalFeed, tmp_path: Path, command: list[str]
) -> None:
    config, catalog = tmp_path / "lake.toml", feed.directory / "catalog.db"
    config.write_text(
        f'changefeed = "{feed.name}"\n[source]\nbootstrap-servers = "h:1"\ntopics = ["t"]\n'
        f'[target]\nuri = "{feed.uri}"\n'
    )
    before = catalog.read_bytes()
    shown = CliRunner().invoke(main, [command[0], str(config), *command[1:]])
    assert shown.exit_code == 2, shown.output
    assert f"`{command[0]}` is not of Iceberg" in shown.output
    assert catalog.read_bytes() == before
