"""A load goes on with the files that it began with: what is loaded must not have become something else."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from consumer.load import write_file
from ordering.errors import ReconcilerError
from sinks.bookkeeping.load_files import Loaded
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from tests.loading.test_service_load_kills import ROWS, WHOLE, Killed, Stop, held, load, place, write_dump
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
