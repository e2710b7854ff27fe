"""Log lines: one form for ours and the libraries', the changefeed and the window on each, few from others."""

import json
import logging
import threading
import warnings
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest
import structlog

from consumer.runtime import logs

SECRET = "a-secret-argument"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    logging.captureWarnings(capture=False)  # what an earlier test captured would not be captured again
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_every_line_is_json_and_says_whose_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(json=True, verbose=False)
    log = structlog.get_logger()
    with logs.about(changefeed="orders"):
        log.info("started")
        with logs.about(window=7):
            log.warning("trying again", error=ValueError("x"))
            logging.getLogger("kafka").critical("broken %s", "off")
        thread = threading.Thread(target=copy_context().run, args=(log.info, "beat"))
        thread.start()
        thread.join()
    log.info("outside")
    found = lines(capsys)
    assert [(one["event"], one.get("changefeed"), one.get("window")) for one in found] == [
        ("started", "orders", None),
        ("trying again", "orders", 7),
        ("broken off", "orders", 7),
        ("beat", "orders", None),
        ("outside", None, None),
    ]
    assert [one["level"] for one in found] == ["info", "warning", "critical", "info", "info"]
    assert all(one["timestamp"].endswith("Z") for one in found)
    assert found[2]["logger"] == "kafka"


@pytest.mark.parametrize(("verbose", "heard"), [(False, []), (True, ["ours", "theirs", "old"])])
def test_what_only_verbose_tells(capsys: pytest.CaptureFixture[str], verbose: bool, heard: list[str]) -> None:
    logs.set_up(json=True, verbose=verbose)
    structlog.get_logger().debug("ours")
    logging.getLogger("kafka.conn").info("chatter")
    logging.getLogger("kafka.conn").warning("theirs")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning("old", DeprecationWarning, "x.py", 1)
    assert [next(word for word in ("ours", "theirs", "old") if word in one["event"]) for one in lines(capsys)] == heard


@pytest.mark.parametrize("as_json", [True, False])
def test_a_traceback_shows_no_variables(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    logs.set_up(json=as_json, verbose=True)

    def connect(password: str) -> None:
        int(password[:0])

    try:
        connect(SECRET)
    except ValueError:
        structlog.get_logger().exception("a bug")
        logging.getLogger("kafka").exception("their bug")
    said = capsys.readouterr().err
    assert said.count("Traceback (most recent call last)") == 2
    assert SECRET not in said
    if as_json:
        assert all("Traceback" in json.loads(line)["exception"] for line in said.splitlines())


def test_on_a_console(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(json=False, verbose=False)
    logs.set_up(json=False, verbose=False)  # twice is once
    with logs.about(changefeed="orders"):
        structlog.get_logger().info("started", rows=3)
        logging.getLogger("kafka").critical("broken off")
    first, second = capsys.readouterr().err.splitlines()
    assert all("changefeed=orders" in line for line in (first, second))
    assert "rows=3" in first
    assert "broken off" in second


def test_a_line_begins_with_what_a_reader_looks_for() -> None:
    line = {"window": 3, "changefeed": "c", "attempt": 2, "where": "h:1", "error": "gone", "event": "trying again"}
    line |= {"level": "warning", "timestamp": "t"}
    ordered = list(logs.in_order(None, "warning", line))
    assert ordered == ["timestamp", "level", "event", "error", "where", "attempt", "changefeed", "window"]
