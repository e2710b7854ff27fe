"""Files that are listed late, deleted, written again under old names; links, and clocks that differ."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from consumer.formats.canal_json import CanalJson
from consumer.source.file_source import FileSource
from consumer.source.offer import Probe, offered
from consumer.storage import place
from consumer.storage.place import StorageRoot
from consumer.tasks.order import ReadTask
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import Report
from consumer.wiring import readers_of, storage_of
from ordering.errors import InputError, ReconcilerError, SourceUnreachableError
from ordering.events import Partition
from ordering.progress import PartitionProgress, Progress
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Window
from tests.consumer.storage.test_broken_files import AT, CSV1, CSV2, SCHEMA, TS, config, line, read, schema, written

SERIES = Partition(f"{AT}/CDC", 0)
LATER = TS + (1 << 18)


def source_of(root: Path) -> FileSource:
    return FileSource(config(root, "csv"), storage_of(config(root, "csv")))


def marked(root: Path, ts: int) -> None:
    (root / "metadata").write_text(f'{{"checkpoint-ts":{ts}}}')


def after(probe: Probe, ts: int, read: int) -> Progress:
    """The progress once everything up to ts is applied and the files before `read` are read."""
    at = CheckpointTs(ts)
    done = {SERIES: PartitionProgress(read, read, counted_to=read)}
    return offered(Progress(at, at, partitions=done), probe)


def reports(source: FileSource, progress: Progress, probe: Probe) -> list[Report]:
    high = probe.resolved.ts or ResolvedTs(0)
    window = Window(progress.checkpoint_ts, progress.base_ts, high, high, probe.ranges)
    spec = ReadSpec(window, {}, lambda *_: True, 1, 1 << 20, native=False, format=CanalJson(sends_batches=True))
    found = [payload for _, payload in ReadTask(spec, readers_of(source.config))([(0, probe.ranges)])]
    assert not [one for one in found if isinstance(one, ReconcilerError)]
    return [one for one in found if isinstance(one, Report)]


def backdated(path: Path, seconds: int) -> None:
    at = path.stat().st_mtime - seconds
    os.utime(path, (at, at))


def second_file(root: Path, ts: int) -> Path:
    (root / CSV2).write_text(line(ts=ts, rest='2,"n","AAE=","a","x,y",1.5'))
    marked(root, LATER)
    return root / CSV2


def listed_late(root: Path, ts: int, seconds: int) -> None:
    """A file that was written so long before the last metadata and holds a row of ts is listed only afterwards."""
    written(root, {})
    source = source_of(root)
    progress = after(source.probe(Progress()), TS + 5, 2)
    backdated(second_file(root, ts), seconds)
    probe = source.probe(progress)
    source.check_uncompacted(reports(source, progress, probe))


def test_a_file_that_is_listed_late_with_passed_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"commitTs {TS + 1}, which is passed already") as caught:
        listed_late(tmp_path, TS + 1, 60)
    assert caught.value.where.endswith("number=2")


@pytest.mark.parametrize(("ts", "seconds"), [(TS + 9, 60), (TS + 1, -60)])
def test_new_rows_and_repetitions_are_not(ts: int, seconds: int, tmp_path: Path) -> None:
    listed_late(tmp_path, ts, seconds)


def test_a_series_that_is_listed_late_is_not_taken_for_an_old_one(tmp_path: Path) -> None:
    written(tmp_path, {CSV1: None})
    source = source_of(tmp_path)
    probe = source.probe(Progress())
    at = CheckpointTs(int(4e12) << 18)  # in the year 2096: every file is older
    (tmp_path / CSV1).parent.mkdir(parents=True)
    (tmp_path / CSV1).write_text(line())
    backdated(tmp_path / CSV1, 60)
    marked(tmp_path, LATER)
    assert SERIES in source.probe(offered(Progress(at, at), probe)).partitions


def removed(root: Path) -> None:
    (root / CSV1).unlink()


def removed_last(root: Path) -> None:
    (root / CSV2).unlink()


def removed_all(root: Path) -> None:
    removed(root)
    removed_last(root)


@pytest.mark.parametrize("remove", [removed, removed_last, removed_all])
def test_files_that_vanish_before_they_were_read_are_named(remove: Callable[[Path], None], tmp_path: Path) -> None:
    written(tmp_path, {CSV2: line().encode()})
    source = source_of(tmp_path)
    progress = offered(Progress(partitions={SERIES: PartitionProgress(1, 1)}), source.probe(Progress()))
    remove(tmp_path)
    marked(tmp_path, LATER)
    with pytest.raises(InputError, match=r"file number \d is gone"):
        source.probe(progress)


def test_a_changefeed_that_began_again_in_the_directory_is_refused(tmp_path: Path) -> None:
    written(tmp_path, {})
    progress = after(source_of(tmp_path).probe(Progress()), TS + 5, 58)
    with pytest.raises(InputError, match="number 57 was read, and now number 1 is the last"):
        source_of(tmp_path).probe(progress)


def test_the_progress_of_topics_is_refused(tmp_path: Path) -> None:
    written(tmp_path, {})
    at = CheckpointTs(TS)
    with pytest.raises(InputError, match="is one of topics: orders"):
        source_of(tmp_path).probe(Progress(at, at, partitions={Partition("orders", 0): PartitionProgress(3, 3)}))


def test_a_store_whose_clock_is_behind_is_refused(tmp_path: Path) -> None:
    written(tmp_path, {})
    marked(tmp_path, int(4e12) << 18)
    with pytest.raises(InputError, match="before its checkpoint, 2096") as caught:
        source_of(tmp_path).probe(Progress())
    assert "clock" in caught.value.hint


def test_schema_files_that_are_passed_or_to_come_are_not_read(tmp_path: Path) -> None:
    written(tmp_path, {SCHEMA: b"no longer read", SCHEMA.replace("1234567890", "1").replace("_46", "_47"): b"not yet"})
    at = CheckpointTs(TS)
    source_of(tmp_path).probe(Progress(at, at))


def renamed(root: Path, old: str, new: str) -> None:
    """The file of one RENAME of a statement."""
    path = root / f"shop/{new}/meta/schema_{TS}_1234567890.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(
        schema(Table=new, TableVersion=TS, Type=14, Query=f"RENAME TABLE `shop`.`{old}` TO `shop`.`{new}`")
    )


def test_a_statement_right_at_the_checkpoint_waits_until_all_its_files_are_written(tmp_path: Path) -> None:
    """TiCDC moves its checkpoint to a DDL, and then writes the DDL's files one by one: a swap may be there in half."""
    written(tmp_path, {})
    marked(tmp_path, TS)
    renamed(tmp_path, "a", "c")
    source, at = source_of(tmp_path), CheckpointTs(TS)
    assert [ddl for ddl in source.probe(Progress()).ddls if ddl.commit_ts == TS] == []
    renamed(tmp_path, "b", "a2")
    marked(tmp_path, LATER)
    (found,) = [ddl for ddl in source.probe(Progress(at, at)).ddls if ddl.commit_ts == TS]
    assert found.sql == "RENAME TABLE `shop`.`b` TO `shop`.`a2`, `shop`.`a` TO `shop`.`c`"


def linked_directory(root: Path, outside: Path) -> None:
    (root / "shop" / "u").symlink_to(outside)


def linked_file(root: Path, outside: Path) -> None:
    (root / CSV2).symlink_to(outside / "secret")


def circle(root: Path, _: Path) -> None:
    (root / "shop" / "loop").symlink_to(root)


def linked_metadata(root: Path, outside: Path) -> None:
    (root / "metadata").unlink()
    (root / "metadata").symlink_to(outside / "secret")


@pytest.mark.parametrize("link", [linked_directory, linked_file, circle, linked_metadata])
def test_links_are_not_followed(link: Callable[[Path, Path], None], tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    written(root, {})
    link(root, outside)
    with pytest.raises(InputError, match="symbolic link") as caught:
        source_of(root).probe(Progress())
    assert "secret" not in caught.value.fact


def test_the_directory_itself_may_be_a_link(tmp_path: Path) -> None:
    written(tmp_path / "root", {})
    (tmp_path / "link").symlink_to(tmp_path / "root")
    assert SERIES in source_of(tmp_path / "link").probe(Progress()).partitions


@pytest.mark.parametrize("name", ["..", ".", "a\nb", "%2e%2e", "#?", "\udcff", "ä", "a b", "*", "CDC", "meta"])
def test_odd_names_harm_nothing(name: str, tmp_path: Path) -> None:
    written(tmp_path, {})
    place = tmp_path / "shop" / name / "7"
    if name not in (".", ".."):
        place.mkdir(parents=True)
        (place / "CDC000001.csv").write_text(line())
    assert SERIES in source_of(tmp_path).probe(Progress()).partitions


def test_a_table_whose_name_holds_a_slash_is_read(tmp_path: Path) -> None:
    at = AT.replace("shop/t", "shop/a/b")
    own = {
        SCHEMA.replace("shop/t", "shop/a/b"): schema(Table="a/b"),
        f"{at}/CDC000001.csv": line(name='"a/b","shop"').encode(),
    }
    written(tmp_path, {CSV1: None, SCHEMA: None, **own})
    source = source_of(tmp_path)
    probe = source.probe(Progress())
    assert sum(report.released for report in reports(source, Progress(), probe)) == 1


def test_pipes_are_no_files(tmp_path: Path) -> None:
    written(tmp_path, {})
    (tmp_path / "metadata").unlink()
    os.mkfifo(tmp_path / "metadata")
    with pytest.raises(InputError, match="a file was expected"):
        source_of(tmp_path).probe(Progress())


def test_a_file_of_any_size_is_not_taken_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, {"metadata": b" " * 70_000})
    with pytest.raises(InputError, match="more than 65536 bytes"):
        source_of(tmp_path).probe(Progress())
    monkeypatch.setattr(place, "MOST_DATA", 10)
    with pytest.raises(InputError, match="more than 10 bytes"):
        StorageRoot(f"file://{tmp_path}").read(CSV1)


SHORT = line()


@pytest.mark.parametrize("held", [SHORT, SHORT * 3], ids=["shorter", "longer"])
def test_a_store_that_answers_with_another_length_than_it_listed_is_read_again(held: str, tmp_path: Path) -> None:
    """Each version of the file ends with a line: nothing else would tell them apart."""
    written(tmp_path, {CSV1: (SHORT + SHORT).encode()})
    source = source_of(tmp_path)
    probe = source.probe(Progress())
    (tmp_path / CSV1).write_text(held)
    found = reports(source, Progress(), probe)
    with pytest.raises(SourceUnreachableError, match="bytes were listed") as caught:
        source.check_same_log(found, {})
    assert f"{AT}/CDC" in caught.value.where
    again = source.probe(Progress())
    source.check_same_log(reports(source, Progress(), again), {})


@pytest.mark.parametrize("held", [line(rest="1,"), SHORT, SHORT * 3], ids=["broken", "shorter", "longer"])
def test_an_answer_of_another_length_is_no_broken_file(
    held: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, {CSV1: (SHORT + SHORT).encode(), CSV2: SHORT.encode()})
    whole = StorageRoot.read
    answers = {CSV1: held.encode()}
    monkeypatch.setattr(StorageRoot, "read", lambda self, path: answers.get(path) or whole(self, path))
    with pytest.raises(SourceUnreachableError, match="was read as") as caught:
        read(config(tmp_path, "csv"))
    assert CSV1 in caught.value.where


def test_a_file_that_grows_after_it_was_read_is_refused(tmp_path: Path) -> None:
    written(tmp_path, {})
    source = source_of(tmp_path)
    progress = after(source.probe(Progress()), TS + 5, 2)
    with (tmp_path / CSV1).open("a") as file:
        file.write(line(ts=TS + 6))
    marked(tmp_path, LATER)
    with pytest.raises(InputError, match=r"number 1 .* bytes when it was read") as caught:
        source.probe(progress)
    assert "number=1" in caught.value.where


def test_a_file_that_is_still_to_be_read_may_grow(tmp_path: Path) -> None:
    written(tmp_path, {})
    source = source_of(tmp_path)
    progress = after(source.probe(Progress()), TS + 5, 1)
    with (tmp_path / CSV1).open("a") as file:
        file.write(line(ts=TS + 6))
    marked(tmp_path, LATER)
    probe = source.probe(progress)
    source.check_same_log(reports(source, progress, probe), {})


def test_metadata_that_goes_back_or_is_gone_is_told_once(tmp_path: Path) -> None:
    written(tmp_path, {})
    source = source_of(tmp_path)
    progress = after(source.probe(Progress()), TS + 5, 1)
    with capture_logs() as logs:
        for ts in (TS, TS + 1, TS + 5, TS + 2):
            marked(tmp_path, ts)
            assert source.probe(progress).resolved.ts == TS + 5
        (tmp_path / "metadata").unlink()
        assert source.probe(progress).resolved.ts == TS + 5
    assert [(log["metadata"], log["known"]) for log in logs] == [(TS, TS + 5), (TS + 2, TS + 5)]
    assert {log["log_level"] for log in logs} == {"warning"}


def test_metadata_behind_the_checkpoint_is_told(tmp_path: Path) -> None:
    """Of a process that was begun again: what `metadata` said before is in the target alone."""
    written(tmp_path, {})
    progress = after(source_of(tmp_path).probe(Progress()), TS + 5, 1)
    marked(tmp_path, TS)
    with capture_logs() as logs:
        assert source_of(tmp_path).probe(progress).resolved.ts == TS
    assert [(log["metadata"], log["known"]) for log in logs] == [(TS, TS + 5)]
