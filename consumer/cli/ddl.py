"""The commands `reconciler ddl ...`."""

from pathlib import Path
from typing import Any

import click

from consumer.cli.shared import CONFIG, JSON, CommitTs, WholeNumber, cut, foreseen, load_config, tell
from consumer.runtime.terminal import say, say_json


@click.group()
def ddl() -> None:
    """List DDLs, and decide about one that stops the changefeed."""


_COMMIT_TS = click.argument("commit_ts", type=CommitTs(0, 2**64 - 1))
_REASON = click.option("--reason", default="", help="The reason; stored in the DDL log.")


@ddl.command("list")
@CONFIG
@click.option("--limit", type=WholeNumber(1, 1000), default=50, show_default=True, help="How many, newest first.")
@JSON
@foreseen
def list_ddls(config: Path, limit: int, as_json: bool) -> None:
    """Show the latest DDLs: state, statement and duration of each.

    \b
    Example:
      reconciler ddl list orders.toml
    """
    from consumer.operate.decisions import ddl_log  # noqa: PLC0415
    from consumer.operate.status import told_of  # noqa: PLC0415

    found = [told_of(record) for record in ddl_log(load_config(config), limit)]
    if as_json:
        say_json(found)
    if not found and not as_json:
        say("no DDL was met yet")
    for told in found if not as_json else []:
        say(ddl_line(told))


@ddl.command()
@CONFIG
@_COMMIT_TS
@_REASON
@JSON
@foreseen
def skip(config: Path, commit_ts: int, reason: str, as_json: bool) -> None:
    """Leave out the DDL at COMMIT_TS that stops the changefeed. The next run continues after it.

    Right only if the target can do without it: rows that come after it may not fit.

    \b
    Example:
      reconciler ddl skip orders.toml 463219034579861505 --reason "a view, not needed here"
    """
    _decide(config, commit_ts, "SKIP", reason, as_json=as_json)


@ddl.command()
@CONFIG
@_COMMIT_TS
@_REASON
@JSON
@foreseen
def done(config: Path, commit_ts: int, reason: str, as_json: bool) -> None:
    """Report that you made the change of the DDL at COMMIT_TS by hand. The next run continues after it.

    \b
    Example:
      reconciler ddl done orders.toml 463219034579861505 --reason "index made with an online tool"
    """
    _decide(config, commit_ts, "TAKE", reason, as_json=as_json)


def _decide(config: Path, commit_ts: int, decision: str, reason: str, *, as_json: bool) -> None:
    from consumer.operate.decisions import decide_ddl  # noqa: PLC0415
    from sinks.bookkeeping.ddl_log import DECIDED, DdlState  # noqa: PLC0415

    line = decide_ddl(load_config(config), commit_ts, DdlState[decision], reason)
    becomes = DECIDED[DdlState[decision]].value
    told = {"commit_ts": commit_ts, "statement": line.sql, "becomes": becomes}
    tell(told, f"the next run notes this DDL as {becomes} and goes on: {line.sql[:200]}", as_json=as_json)


def ddl_line(told: dict[str, Any]) -> str:
    """A line of the log for people."""
    took = "" if told["duration_ms"] is None else f" in {told['duration_ms']} ms"
    said = told["reason"] or (told["executed"] if told["state"] == "ignored" else "")
    why = f" ({cut(said, 200)})" if said else ""
    place = f" in {told['database']}" if told["database"] else ""
    return f"{told['commit_ts']} {told['time']} {told['state']}{took}{place}: {cut(told['statement'], 100)}{why}"
