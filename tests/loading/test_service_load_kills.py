"""A load that is killed between any two steps goes on where it was, and writes nothing twice; what is wrong is told."""

import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from consumer.cli.main import main
from consumer.config.model import config_from
from consumer.load import write_file
from consumer.load.run import Load, LoadOptions
from consumer.load.write_file import LoadStep
from consumer.runtime import retry
from ordering.errors import ConfigError, InputError, LeadershipLostError, ReconcilerError, TargetUnreachableError
from sinks.bookkeeping.load_files import Loaded, LoadTable, Mark
from sinks.registry import open_target
from sinks.rows.spool import Spool
from sinks.rows.values import ValueRules
from sinks.target import Target
from tests.loading.dumping import KEYS, METADATA, NAMES
from tests.service.cells import Cells, MariaDbCells, SqliteCells
from tests.service.lab import toml_of
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
TSO = 463139414630400001
ROWS = 25
HEAD = "CREATE TABLE `{name}` (\n  `id` int(11) NOT NULL,\n  `v` varchar(20) DEFAULT NULL{rest}\n)"


def write_dump(place: Path, database: str = "d", tso: int = TSO) -> Path:
    """Two tables with a key, one without, two views, of which the first needs the second."""
    place.mkdir()
    place.joinpath("metadata").write_text(METADATA.format(tso=tso))
    place.joinpath(f"{database}-schema-create.sql").write_text(f"{NAMES}CREATE DATABASE `{database}`;\n")
    for table, rest in (("a", ",\n  PRIMARY KEY (`id`)"), ("b", ",\n  UNIQUE KEY `u` (`id`)"), ("c", "")):
        text = f"{NAMES}{HEAD.format(name=table, rest=rest)} ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;\n"
        place.joinpath(f"{database}.{table}-schema.sql").write_text(text)
        for number in range(2):
            values = ",\n".join(f"({number * ROWS + i},'v{i}')" for i in range(ROWS))
            data = f"{NAMES}{KEYS}INSERT INTO `{table}` VALUES\n{values};\n"
            place.joinpath(f"{database}.{table}.00000000{number}.sql").write_text(data)
    for view, of in (("v", "w"), ("w", "a")):
        place.joinpath(f"{database}.{view}-schema.sql").write_text(f"{NAMES}CREATE TABLE `{view}`(\n`id` int\n);\n")
        place.joinpath(f"{database}.{view}-schema-view.sql").write_text(
            f"{NAMES}DROP TABLE IF EXISTS `{view}`;\nCREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER"
            f" VIEW `{view}` (`id`) AS SELECT `{database}`.`{of}`.`id` AS `id` FROM `{database}`.`{of}`;\n"
        )
    return place


def values(uri: str, **more: Any) -> dict[str, Any]:
    base = {
        "changefeed": "killed",
        "source": {"bootstrap-servers": "127.0.0.1:1", "topics": ["t"]},
        "target": {"uri": uri},
        "redis": {"uri": ""},
        "limits": {"retry-seconds": 0.1},
        "filter": {"force-replicate": True},
    }
    return {**base, **more}


class Killed(BaseException):
    """What no code of ours catches."""


class Stop:
    """Ends at the n-th step."""

    def __init__(self, at: int) -> None:
        self.left, self.steps = at, 0

    def __call__(self, _: LoadStep) -> None:
        self.steps += 1
        self.left -= 1
        if self.left == 0:
            raise Killed


def load(uri: str, dump: Path, observe: Any = None, **more: Any) -> Load:
    return Load(config_from(values(uri, **more), "test"), LoadOptions(dump), observe=observe or Stop(0))


def held(cells: Cells, database: str) -> list[list[int]]:
    tables = cells.tables([database])
    return [sorted(row["id"] for row in tables[f"{database}.{table}"][1]) for table in "abc"]


WHOLE = [list(range(2 * ROWS))] * 3


@pytest.fixture(params=["sqlite", "mariadb", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The URI of a target, its cells, a database that no other test has."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/target", SqliteCells(tmp_path / "target"), "d"
        return
    server = request.getfixturevalue(f"{request.param}_server")
    cells = MariaDbCells(server.uri) if request.param == "mariadb" else PostgresCells(server.uri)
    name = str(request.getfixturevalue("database_prefix"))
    yield server.uri, cells, name
    cells.drop([name])
    cells.close()


def test_a_load_that_ends_at_any_step_goes_on(place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_file, "BATCH_ROWS", 10)
    uri, cells, database = place
    dump = write_dump(tmp_path / "dump", database)
    changefeed = f"killed-{database}"
    ended = 0
    while True:
        ended += 1
        observe = Stop(ended)  # each time a step further, so that all neighbours come to be parted
        try:
            outcome = load(uri, dump, observe, changefeed=changefeed).run()
        except Killed:
            assert ended < 100
            refuse_run(uri, changefeed)
        else:
            break
    assert ended > 10
    assert (outcome.finished, outcome.resumed) == (True, True)
    assert held(cells, database) == WHOLE
    assert int(cells.progress(changefeed)["checkpoint_ts"]) == TSO
    again = load(uri, dump, changefeed=changefeed).run()
    assert (again.finished, again.rows) == (True, 0)
    assert held(cells, database) == WHOLE


def refuse_run(uri: str, changefeed: str) -> None:
    """What is loaded in part says so."""
    target = open_target(uri, ValueRules())
    try:
        stored = target.stored(changefeed)
        assert stored is not None
        assert stored.progress.loading_ts == TSO
        assert stored.progress.checkpoint_ts == 0
    finally:
        target.close()


CHILD = """
import os, signal, sys
from pathlib import Path
from consumer.config.model import load_config
from consumer.load import write_file
from consumer.load.run import Load, LoadOptions
write_file.BATCH_ROWS = 10
class Kill:
    left = int(sys.argv[3])
    def __call__(self, _):
        Kill.left -= 1
        if Kill.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
Load(load_config(Path(sys.argv[1])), LoadOptions(Path(sys.argv[2])), observe=Kill()).run()
"""


def test_a_process_that_is_killed_with_sigkill_is_gone_on_from(tmp_path: Path) -> None:
    dump, config = write_dump(tmp_path / "dump"), tmp_path / "c.toml"
    config.write_text(toml_of(values(f"sqlite:///{tmp_path}/target")))
    for step in (4, 11, 0):
        done = subprocess.run([sys.executable, "-c", CHILD, config, dump, str(step)], check=False, timeout=120)
        assert done.returncode == (0 if step == 0 else -signal.SIGKILL)
    assert held(SqliteCells(tmp_path / "target"), "d") == WHOLE


def reconciler(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_workers_in_parallel_and_the_command(tmp_path: Path) -> None:
    dump, config = write_dump(tmp_path / "dump"), tmp_path / "c.toml"
    config.write_text(toml_of(values(f"sqlite:///{tmp_path}/target")))
    done = reconciler("load", config, "--dump", dump, "--workers", 2, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout.splitlines()[-1])
    assert told.pop("seconds") >= 0
    assert told == {
        "checkpoint_ts": TSO, "tables": 3, "views": 2, "files": 6, "rows": 6 * ROWS, "left_out": [], "without_rows": [],
        "unproven": 6, "resumed": False,
        "finished": True,
    }  # fmt: skip
    assert held(SqliteCells(tmp_path / "target"), "d") == WHOLE
    again = reconciler("load", config, "--dump", dump)
    assert again.exit_code == 0
    assert again.stdout.startswith("loaded: 0 rows")


def test_a_view_of_a_table_that_is_left_out_is_refused(tmp_path: Path) -> None:
    dump, rules = write_dump(tmp_path / "dump"), {"force-replicate": True, "rules": ["d.*", "!d.a"]}
    with pytest.raises(InputError, match=r"names `?d`?\.`?a`?, which filter\.rules leave out"):
        load(f"sqlite:///{tmp_path}/target", dump, filter=rules).run()
    without = {"force-replicate": True, "rules": ["d.*", "!d.a", "!d.v", "!d.w"]}
    assert load(f"sqlite:///{tmp_path}/other", dump, filter=without).run().finished


def test_what_can_not_be_loaded_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    uri = f"sqlite:///{tmp_path}/target"

    def refused(code: int, *parts: str, **more: Any) -> None:
        with pytest.raises(ReconcilerError) as caught:
            load(uri, dump, **more).run()
        assert caught.value.exit_code == code
        for part in parts:
            assert part in str(caught.value)

    refused(2, "source.start-ts is 5", str(TSO), source={**values(uri)["source"], "start-ts": 5})
    metadata = dump / "metadata"
    for text, told in (
        (METADATA.replace("Finished dump at", "x").format(tso=TSO), "lacks `Finished dump at`"),
        (METADATA.format(tso=0), "is no TSO"),
        (METADATA.replace("tidb-binlog", "mysql-bin.1").format(tso=TSO), "a dump of MySQL or MariaDB"),
        ("Finished dump at: x\n", "names 0 snapshots"),
    ):
        metadata.write_text(text)
        refused(3, told, "metadata")
    metadata.unlink()
    refused(3, "can't read the dump's metadata")
    assert not (tmp_path / "target").exists()
    metadata.write_text(METADATA.format(tso=TSO))
    cells = SqliteCells(tmp_path / "target")
    cells.run("d", "CREATE TABLE a (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO a VALUES (7, 'mine')")
    refused(4, "table d.a holds rows already")
    assert cells.tables(["d"])["d.a"][1] == [{"id": 7, "v": "mine"}]


def test_a_file_that_is_wrong_names_its_row_and_is_gone_on_from_once_mended(tmp_path: Path) -> None:
    dump, uri = write_dump(tmp_path / "dump"), f"sqlite:///{tmp_path}/target"
    wrong = dump / "d.b.000000001.sql"
    right = wrong.read_text()
    wrong.write_text(right.replace("(30,", "('x30',"))
    with pytest.raises(ReconcilerError, match="column 'id': 'x30' is no whole number") as caught:
        load(uri, dump).run()
    assert caught.value.where == "file=d.b.000000001.sql row=6"
    wrong.write_text(right.replace("(30,", "(29,"))
    with pytest.raises(ReconcilerError, match=r"file=d\.b\.000000001\.sql row=6"):
        load(uri, dump).run()
    wrong.write_text(right)
    other = write_dump(tmp_path / "other", tso=TSO + 1)
    with pytest.raises(ConfigError, match="another dump is being loaded"):
        load(uri, other).run()
    assert load(uri, dump).run().finished
    assert held(SqliteCells(tmp_path / "target"), "d") == WHOLE


def test_who_was_taken_over_from_writes_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_file, "BATCH_ROWS", 10)
    dump, uri = write_dump(tmp_path / "dump"), f"sqlite:///{tmp_path}/target"

    def taken(step: LoadStep) -> None:
        if step is LoadStep.READ:
            raise_epoch(tmp_path / "target")

    with pytest.raises(LeadershipLostError, match="another instance loads"):
        load(uri, dump, taken).run()
    assert held(SqliteCells(tmp_path / "target"), "d") == [[], [], []]


def raise_epoch(directory: Path) -> None:
    import sqlite3  # noqa: PLC0415

    with sqlite3.connect(directory / "ticdc_reconciler.sqlite") as connection:
        connection.execute("UPDATE loaded SET epoch = epoch + 1")


def test_a_commit_of_which_no_answer_came_doubles_nothing(
    place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks while the server commits; asked at once, it still says what was before."""
    monkeypatch.setattr(write_file, "BATCH_ROWS", 10)
    monkeypatch.setattr(retry, "_LONGEST_S", 0.01)
    monkeypatch.setattr(retry, "_JITTER_S", 0.0)
    uri, cells, database = place
    write, look = Target.write_loaded, LoadTable.reached
    committing: dict[tuple[str, Loaded], bool] = {}
    stale: dict[str, Loaded] = {}

    def write_without_answer(self: Any, mark: Mark, before: Loaded, after: Loaded, rows: Spool) -> None:
        write(self, mark, before, after, rows)
        if (mark.file, before) not in committing:
            committing[mark.file, before] = True
            stale[mark.file] = before
            raise TargetUnreachableError("no answer to COMMIT")

    def look_too_early(self: Any, mark: Mark) -> Loaded:
        return stale.pop(mark.file, None) or look(self, mark)

    monkeypatch.setattr(Target, "write_loaded", write_without_answer)
    monkeypatch.setattr(LoadTable, "reached", look_too_early)
    dump = write_dump(tmp_path / "dump", database)
    outcome = load(uri, dump, changefeed=f"killed-{database}", limits={"retry-seconds": 60}).run()
    assert outcome.finished
    assert len(committing) == 6 * 4
    assert held(cells, database) == WHOLE


def test_two_loads_of_one_epoch_write_a_file_once(tmp_path: Path) -> None:
    """A worker that outlived its load comes behind another one: it writes nothing at the place that was passed."""
    dump, uri = write_dump(tmp_path / "dump"), f"sqlite:///{tmp_path}/target"
    assert load(uri, dump).run().finished
    target = open_target(uri, ValueRules())
    try:
        epoch = target.stored("killed").epoch  # type: ignore[union-attr]
        target.connect()
        mark = Mark("killed", epoch, "d.c.000000000.sql")
        whole = target.loads.reached(mark)
        assert (whole.rows, whole.whole) == (ROWS, True)
        for before, after in ((Loaded(0, whole=False), whole), (Loaded(0, whole=False), Loaded(ROWS, whole=False))):
            with Spool() as nothing, pytest.raises(TargetUnreachableError, match="an earlier commit"):
                target.write_loaded(mark, before, after, nothing)
        with Spool() as nothing, pytest.raises(LeadershipLostError):
            target.write_loaded(Mark("killed", epoch - 1, mark.file), Loaded(0, whole=False), whole, nothing)
        assert target.loads.reached(mark) == whole
    finally:
        target.close()


def test_rows_that_came_before_the_files_were_noted_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed right after it became the leader, nothing is noted; what lies in the tables then is nobody's."""

    def killed(*_: object) -> None:
        raise Killed

    dump, uri = write_dump(tmp_path / "dump"), f"sqlite:///{tmp_path}/target"
    with monkeypatch.context() as patched:
        patched.setattr(Target, "begin_load", killed)
        with pytest.raises(Killed):
            load(uri, dump).run()
    SqliteCells(tmp_path / "target").run("d", "CREATE TABLE c (id INTEGER, v TEXT); INSERT INTO c VALUES (7, 'mine')")
    with pytest.raises(ReconcilerError, match=r"table d\.c holds rows already"):
        load(uri, dump).run()


def told(tmp_path: Path, dump: Path, *options: object) -> tuple[int, dict[str, Any], str]:
    """What the command says: exit code, its JSON, its errors."""
    config = tmp_path / "c.toml"
    config.write_text(toml_of(values(f"sqlite:///{tmp_path}/target")))
    done = reconciler("load", config, "--dump", dump, "--workers", 1, "--json", *options)
    lines = done.stdout.splitlines()
    return done.exit_code, json.loads(lines[-1]) if done.exit_code == 0 else {}, done.output


@pytest.mark.parametrize("name", ["t-000000000.csv", "d.a.000000002.csv.lz4", "more/d.a.000000002.sql", "D.A.2.SQL"])
def test_files_of_other_names_end_the_command(tmp_path: Path, name: str) -> None:
    dump = write_dump(tmp_path / "dump")
    dump.joinpath("more").mkdir()
    dump.joinpath(name).write_text("x")
    code, _, output = told(tmp_path, dump)
    assert code == 2
    assert repr(name) in output
    assert not (tmp_path / "target").exists()
    code, done, _ = told(tmp_path, dump, "--ignore", name)
    assert (code, done["finished"], done["left_out"], done["unproven"]) == (0, True, [name], 6)


def test_a_number_that_is_cut_is_not_loaded(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    dump.joinpath("d.c.000000000.sql").unlink()
    dump.joinpath("d.c.000000001.sql").unlink()
    whole = b'"id","v"\r\n1,"x"\r\n12,\\N\r\n'
    path = dump / "d.c.000000000.csv"
    for data in (b'"v","id"\r\n"x",1\r\n"y",1', b'"v","id"\r\n"x",1\r\n"y",12', b"", b'"id","v"\r\n'):
        path.write_bytes(data)
        code, _, output = told(tmp_path, dump)
        assert (code, "d.c.000000000.csv" in output) == (3, True)
    path.write_bytes(whole)
    code, done, _ = told(tmp_path, dump)
    assert (code, done["finished"]) == (0, True)


def test_what_a_dump_lacks_is_named(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    for path in dump.glob("d.a.*.sql"):
        path.unlink()
    sums = dump / "SHA256SUMS"
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(dump.iterdir())]
    sums.write_text("".join(lines))
    code, done, _ = told(tmp_path, dump, "--checksums", sums, "--ignore", sums.name)
    assert (code, done["without_rows"], done["unproven"]) == (0, ["d.a"], 0)


def test_a_dump_without_any_rows_is_refused_unless_it_is_said(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    for path in dump.glob("d.*.0*.sql"):
        path.unlink()
    code, _, output = told(tmp_path, dump)
    assert (code, "the dump holds no rows at all" in output) == (2, True)
    assert not (tmp_path / "target").exists()
    code, done, _ = told(tmp_path, dump, "--no-rows")
    assert (code, done["without_rows"], done["rows"]) == (0, ["d.a", "d.b", "d.c"], 0)
