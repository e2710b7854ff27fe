"""A load goes on with the files that it began with: what is loaded must not have become something else."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from consumer.config.model import config_from
from consumer.load import write_file
from consumer.load.csv_rows import CsvForm
from consumer.load.run import Load, LoadOptions
from ordering.errors import ReconcilerError
from sinks.bookkeeping.load_files import Loaded
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from tests.loading.dumping import METADATA
from tests.loading.test_service_load_kills import (
    ROWS,
    TSO,
    WHOLE,
    Killed,
    Stop,
    held,
    load,
    place,
    values,
    write_dump,
)
from tests.service.cells import SqliteCells
from tests.service.lab import eventually

__all__ = ["place"]
pytestmark = pytest.mark.service


def noted(uri: str, changefeed: str) -> dict[str, Loaded]:
    """How far the files of a load have got."""
    with closing(open_target(uri, ValueRules())) as target:
        stored = target.stored(changefeed)
        assert stored is not None
        return target.loads.files(changefeed, stored.progress.ledger)


def ended(uri: str, changefeed: str) -> None:
    """Wait until the server has noticed that the load before is gone."""
    with closing(open_target(uri, ValueRules())) as target:
        eventually("nobody leads", lambda: not target.is_led(changefeed))


def test_rows_that_are_others_since_they_were_loaded_are_refused(
    place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file that is loaded in part, and of one that is loaded as a whole; as many rows, as many bytes."""
    monkeypatch.setattr(write_file, "BATCH_ROWS", 10)
    uri, cells, database = place
    dump, changefeed = write_dump(tmp_path / "dump", database), f"changed-{database}"
    with pytest.raises(Killed):
        load(uri, dump, Stop(16), changefeed=changefeed).run()
    begun = {name: found for name, found in noted(uri, changefeed).items() if found.rows}
    assert sorted((found.rows, found.whole) for found in begun.values()) == [(10, False), (ROWS, True)]
    for name in begun:
        path = dump / name
        text = path.read_text()
        path.write_text(text.replace("'v3'", "'w3'"))
        ended(uri, changefeed)
        with pytest.raises(ReconcilerError, match="not those that were loaded: it is another file now") as caught:
            load(uri, dump, changefeed=changefeed).run()
        assert f"file={name}" in caught.value.where
        path.write_text(text)  # the same rows, touched since
    whole = next(dump / name for name, found in begun.items() if found.whole)
    right = whole.read_text()
    whole.write_text(f"{right.rstrip().removesuffix(';')},\n(999,'more');\n")
    ended(uri, changefeed)
    with pytest.raises(ReconcilerError, match="more than the 25 rows"):
        load(uri, dump, changefeed=changefeed).run()
    whole.write_text(right)
    ended(uri, changefeed)
    assert load(uri, dump, changefeed=changefeed).run().finished
    assert held(cells, database) == WHOLE


def test_a_load_goes_on_with_the_options_that_it_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other ones make other rows of the same bytes: here of those that are not loaded yet."""
    monkeypatch.setattr(write_file, "BATCH_ROWS", 10)
    uri, dump = f"sqlite:///{tmp_path}/target", tmp_path / "dump"
    dump.mkdir()
    dump.joinpath("metadata").write_text(METADATA.format(tso=TSO))
    dump.joinpath("d-schema-create.sql").write_text("CREATE DATABASE `d`;\n")
    dump.joinpath("d.t-schema.sql").write_text("CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` INT);\n")
    rows = [f"{n},{n if n < 15 else 'nil'}" for n in range(20)]
    dump.joinpath("d.t.000000000.csv").write_text('"id","v"\n' + "".join(f"{row}\n" for row in rows))

    def loading(form: CsvForm, at: int = 0) -> Load:
        return Load(config_from(values(uri), "test"), LoadOptions(dump, form=form), observe=Stop(at))

    right = CsvForm(null="nil")
    with pytest.raises(Killed):
        loading(right, 6).run()
    assert [found.rows for found in noted(uri, "killed").values()] == [10]
    with pytest.raises(ReconcilerError, match="other options --csv-"):
        loading(CsvForm(null="NULL")).run()
    assert loading(right).run().finished
    found = SqliteCells(tmp_path / "target").tables(["d"])["d.t"][1]
    assert [row["v"] for row in found[14:16]] == [14, None]


def test_a_load_that_an_earlier_version_began_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_file, "BATCH_ROWS", 10)
    dump, uri = write_dump(tmp_path / "dump"), f"sqlite:///{tmp_path}/target"
    with pytest.raises(Killed):
        load(uri, dump, Stop(16)).run()
    with closing(sqlite3.connect(tmp_path / "target" / "ticdc_reconciler.sqlite")) as connection:
        connection.execute("ALTER TABLE loaded DROP COLUMN seen")
        connection.commit()
    assert load(uri, dump).run().finished
    assert held(SqliteCells(tmp_path / "target"), "d") == WHOLE
