"""Drift: a row that the target lost, and one that nobody sent, are found with the next event that touches them."""

import pytest
from structlog.testing import capture_logs

from consumer.config.model import Config, config_from
from ordering.drift import Drift
from ordering.errors import DriftError
from ordering.events import TableName
from sinks.ddl.parse.statement import read_statement
from tests.simulation.memory import Disk, execute
from tests.simulation.script import CREATE, Script
from tests.simulation.world import BY_TASKS, config_of

NAME = TableName("d", "t")
UNIQUE = CREATE.replace(",PRIMARY", ",UNIQUE `u`(`v`),PRIMARY")
CONSISTENCIES = ("snapshot", "transaction", "row")


def configured(consistency: str, **more: object) -> Config:
    """The simulated changefeed with some sections changed."""
    values = config_of(consistency).model_dump(by_alias=True, exclude_unset=True)
    for section, keys in more.items():
        values[section] = {**values.get(section, {}), **keys}  # type: ignore[dict-item]
    return config_from(values, "drift")


def begun(config: Config, sql: str = CREATE) -> Script:
    """Rows 1 to 4; checkpoint 9."""
    script = Script(config, tuning=BY_TASKS)
    script.ddl(1, sql)
    for key in range(1, 5):
        script.row(5, key, f"v{key}")
    script.mark(9)
    assert script.run().checkpoint_ts == 9
    return script


def lose(script: Script, key: int) -> None:
    del script.disk.tables[NAME].rows[str(key),]


def invent(script: Script, key: int) -> None:
    script.disk.tables[NAME].rows[str(key),] = {"id": str(key), "v": f"phantom {key}"}


def update(script: Script, ts: int, key: int, value: str) -> None:
    script.row(ts, key, value, type="UPDATE", old=[{"v": f"v{key}"}])


@pytest.mark.parametrize("sql", [CREATE, UNIQUE], ids=["written over", "deleted first"])
@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_lost_rows_and_phantoms_are_counted_by_table(consistency: str, sql: str) -> None:
    script = begun(config_of(consistency), sql)
    for key in (1, 2, 3):
        lose(script, key)
    update(script, 11, 1, "new")
    script.delete(12, 2)
    script.row(14, 6, "f")
    script.mark(19)
    with capture_logs() as logs:
        assert script.run().drift == {NAME: Drift(missing=2, unexpected=0)}
        invent(script, 7)
        invent(script, 8)
        script.row(21, 7, "g")
        script.row(22, 8, "h")
        script.delete(23, 8)
        script.mark(29)
        assert script.run().drift == {NAME: Drift(missing=2, unexpected=2)}
    told = [line for line in logs if "drifted" in line["event"]]
    assert {line["table"] for line in told} == {"d.t"}
    assert (sum(line["missing"] for line in told), sum(line["unexpected"] for line in told)) == (2, 2)
    update(script, 31, 3, "later")
    script.mark(39)
    assert script.run().drift == {NAME: Drift(missing=3, unexpected=2)}


@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_what_a_window_does_to_a_row_and_takes_back_is_no_drift(consistency: str) -> None:
    script = begun(config_of(consistency))
    script.row(11, 6, "f")
    script.delete(12, 6)
    script.delete(11, 1)
    script.row(12, 1, "again")
    script.row(13, 9, "v2", type="UPDATE", old=[{"id": "2", "v": "v2"}])
    script.row(14, 2, "new")
    update(script, 11, 3, "b")
    script.delete(13, 3)
    script.delete(12, 4)
    script.row(12, 4, "split")
    update(script, 11, 3, "b")
    script.row(11, 6, "f")
    script.mark(19)
    assert script.run().drift == {}
    assert script.rows() == {"1": "again", "2": "new", "4": "split", "9": "v2"}


@pytest.mark.parametrize("consistency", ["snapshot", "transaction"])
def test_it_stops_before_anything_is_committed(consistency: str) -> None:
    script = begun(configured(consistency, target={"on-drift": "stop"}))
    lose(script, 1)
    script.delete(11, 1)
    script.mark(19)
    with pytest.raises(DriftError, match=r"d\.t: 1 rows missing, 0 rows that should not be there"):
        script.run()
    assert (script.stored.checkpoint_ts, script.stored.drift) == (9, {})


def test_what_tasks_have_committed_is_counted_before_it_stops() -> None:
    script = begun(configured("row", target={"on-drift": "stop"}))
    lose(script, 1)
    script.delete(11, 1)
    script.mark(19)
    with pytest.raises(DriftError):
        script.run()
    assert (script.stored.checkpoint_ts, script.stored.drift) == (19, {NAME: Drift(1, 0)})
    script.restarted()
    script.row(21, 1, "a")
    script.mark(29)
    assert script.run().drift == {NAME: Drift(1, 0)}


@pytest.mark.parametrize(
    "more",
    [
        {"filter": {"event-filters": [{"matcher": ["d.other"], "ignore-event": ["insert"]}]}},
        {"quarantine": {"enabled": True}},
    ],
    ids=["event filters", "quarantine"],
)
def test_what_may_be_left_out_is_not_judged(more: dict[str, object]) -> None:
    script = begun(configured("snapshot", **more))
    lose(script, 1)
    script.delete(11, 1)
    script.mark(19)
    assert script.run().drift == {}


def test_the_first_window_is_not_judged() -> None:
    """Who filled the tables before is not known."""
    disk = Disk()
    execute(disk, read_statement(CREATE), "d")
    script = Script(config_of(start_ts=3), disk=disk, tuning=BY_TASKS)
    script.delete(5, 1)
    script.mark(9)
    assert script.run().drift == {}
    script.delete(11, 2)
    script.mark(19)
    assert script.run().drift == {NAME: Drift(1, 0)}
