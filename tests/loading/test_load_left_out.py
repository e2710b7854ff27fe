"""Tables of a dump whose rows a load would leave out although a run replicates them: refused, before the checkpoint."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import config_from
from consumer.load.run import Load, LoadOptions
from consumer.operate.progress import opened
from ordering.errors import ConfigError, TableMismatchError
from tests.loading.test_service_load_kills import ROWS, TSO, values, write_dump

NO_FORCE = {"force-replicate": False}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/target"


def load(uri: str, dump: Path, **given: Any) -> Load:
    options = {name: given.pop(name) for name in ("ignored",) if name in given}
    return Load(config_from(values(uri, **given), "a test"), LoadOptions(dump, **options))


def count(tmp_path: Path, table: str) -> int:
    with sqlite3.connect(tmp_path / "target" / "d.sqlite") as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def by_hand(tmp_path: Path, sql: str) -> None:
    (tmp_path / "target").mkdir()
    with sqlite3.connect(tmp_path / "target" / "d.sqlite") as connection:
        connection.executescript(sql)


@pytest.mark.parametrize("key", ["", ", UNIQUE (id)"])
def test_a_table_of_the_target_without_upstreams_key(uri: str, tmp_path: Path, key: str) -> None:
    dump = write_dump(tmp_path / "dump")
    by_hand(tmp_path, f"CREATE TABLE a (id INTEGER, v TEXT{key})")
    with pytest.raises(TableMismatchError, match=r"table d\.a has no valid index in the target"):
        load(uri, dump, filter=NO_FORCE).run()
    by_hand_again = sqlite3.connect(tmp_path / "target" / "d.sqlite")
    by_hand_again.executescript("DROP TABLE a; CREATE TABLE a (id INTEGER PRIMARY KEY, v TEXT)")
    by_hand_again.close()
    outcome = load(uri, dump, filter=NO_FORCE).run()
    assert (outcome.finished, outcome.left_out) == (True, ["d.c"])
    assert count(tmp_path, "a") == 2 * ROWS


def test_it_is_upstreams_key_that_says_what_is_replicated(uri: str, tmp_path: Path) -> None:
    """TiCDC sends no changes of a table without one, so its rows would stay as they were."""
    dump = write_dump(tmp_path / "dump")
    by_hand(tmp_path, "CREATE TABLE c (id INTEGER PRIMARY KEY, v TEXT)")
    assert load(uri, dump, filter=NO_FORCE).run().left_out == ["d.c"]
    assert count(tmp_path, "c") == 0
    assert load(uri, dump, filter=NO_FORCE).run().resumed


def test_without_definitions_the_targets_key_has_to_be_there(uri: str, tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    for path in dump.glob("*-schema*.sql"):
        path.unlink()
    for path in dump.glob("d.*.sql"):
        path.write_text(path.read_text().replace("` VALUES", "` (`id`,`v`) VALUES"))
    by_hand(tmp_path, "".join(f"CREATE TABLE {name} (id INTEGER, v TEXT);" for name in "abc"))
    with pytest.raises(TableMismatchError, match="has no valid index in the target"):
        load(uri, dump, filter=NO_FORCE).run()


def test_an_event_filter_leaves_out_no_rows(uri: str, tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    ignored = {**NO_FORCE, "event-filters": [{"matcher": ["d.a"], "ignore-event": ["create table"]}]}
    with pytest.raises(ConfigError, match=r"the dump holds rows of table d\.a, which the target lacks"):
        load(uri, dump, filter=ignored).run()
    for path in dump.glob("d.a.0*.sql"):
        path.unlink()
    assert "d.a" in load(uri, dump, filter=ignored, changefeed="another").run().left_out


def test_another_dump_of_the_same_moment_is_not_this_one(uri: str, tmp_path: Path) -> None:
    dump, other = write_dump(tmp_path / "dump"), write_dump(tmp_path / "other")
    for path in [*other.glob("d.a*"), *other.glob("d.w*"), *other.glob("d.v*")]:
        path.unlink()
    assert load(uri, other).run().finished
    assert load(uri, other).run().resumed
    with pytest.raises(ConfigError, match=f"another dump was loaded into this changefeed, of TSO {TSO}"):
        load(uri, dump).run()


def test_a_file_that_was_ignored_is_not_loaded_afterwards(uri: str, tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    assert load(uri, dump, ignored=("d.a.000000001.sql",)).run().finished
    with pytest.raises(ConfigError, match="another dump was loaded"):
        load(uri, dump).run()


def test_a_table_that_a_rule_names_in_another_case_is_refused_before_anything_is_begun(
    uri: str, tmp_path: Path
) -> None:
    """Tables of which no row came later stayed empty."""
    dump = write_dump(tmp_path / "dump")
    with pytest.raises(ConfigError, match="but for case"):
        load(uri, dump, filter={"rules": ["D.*"], "case-sensitive": True}).run()
    assert load(uri, dump, filter={"rules": ["D.*"], "case-sensitive": False}).run().finished
    assert count(tmp_path, "a") == 2 * ROWS


@pytest.mark.parametrize("left", ["D.b", "D.v"])
def test_what_case_leaves_out_is_refused_and_the_rules_can_be_corrected(uri: str, tmp_path: Path, left: str) -> None:
    """Also a table without rows, and a view."""
    dump = write_dump(tmp_path / "dump")
    for number in range(2):
        (dump / f"d.b.00000000{number}.sql").unlink()
    rules = ["d.a", "d.b", "d.v", "d.w"]
    wrong = load(uri, dump, filter={"rules": [*(set(rules) - {left.lower()}), left], "case-sensitive": True})
    with pytest.raises(ConfigError, match="but for case"):
        wrong.run()
    right = config_from(values(uri, filter={"rules": rules, "case-sensitive": True}), "a test")
    assert Load(right, LoadOptions(dump)).run().finished
    with opened(right) as target:
        stored = target.stored("killed")
    assert stored is not None
    read_filter(right.filter).check_change(stored.progress.filter_digest, "killed")
