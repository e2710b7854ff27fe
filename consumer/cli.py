"""The command line: `reconciler run | check | status | serve | demo`; exit codes in `ordering.errors`."""

from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from consumer import logs
from consumer.cli_completion import completion
from consumer.cli_ddl import ddl, ddl_line
from consumer.cli_init import init
from consumer.cli_load import load
from consumer.cli_progress import progress
from consumer.cli_quarantine import quarantine
from consumer.cli_serve import serve
from consumer.cli_tail import tail
from consumer.cli_verify import verify
from consumer.clock import process_start
from consumer.commands import CONFIG, JSON, foreseen, tell
from consumer.config import Config, load_config
from consumer.signals import Stopped, StopRequest, stopped_by_signals
from consumer.terminal import say, say_json

if TYPE_CHECKING:
    from consumer.runner import Outcome
_STARTED = process_start()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ticdc-reconciler")
@click.option(
    "--log-format",
    type=click.Choice(["console", "json"]),
    default="console",
    show_default=True,
    help="How log lines look.",
)
@click.option("--verbose", is_flag=True, help="Log more.")
def main(log_format: str, verbose: bool) -> None:
    """Keep a relational database equal to a TiDB cluster, from the Canal-JSON messages that TiCDC writes to Kafka.

    \b
    Examples:
      reconciler demo                      see it work, everything embedded
      reconciler check orders.toml         try config, Kafka, Redis and target
      reconciler run orders.toml           run until stopped
      reconciler run orders.toml --once    apply what the topics hold, then exit
    """
    logs.set_up(json=log_format == "json", verbose=verbose)


@main.command()
@CONFIG
@click.option("--once", is_flag=True, help="Apply everything up to the resolvedTs that the topics hold now, then exit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
@foreseen
def run(config: Path, once: bool, as_json: bool) -> int | None:
    """Reconcile the changefeed of CONFIG until stopped. SIGTERM and SIGINT stop cleanly.

    \b
    Example:
      reconciler run orders.toml --once --json
    """
    told = load_config(config)
    stopping = StopRequest()
    with suppress(Stopped), stopped_by_signals(stopping):  # without a gap, from the first process to the last line
        outcome = _reconcile(told, stopping, once=once)
        if as_json:
            say_json(outcome.as_json(), indent=False)
    return 0


def _reconcile(config: Config, stopping: StopRequest, *, once: bool) -> "Outcome":
    """Run it, on Java that starts while the rest is loaded. Raises Stopped, which may come anywhere."""
    from consumer.spark_home import OwnSpark  # noqa: PLC0415 Spark and drivers are loaded only where they are needed

    with closing(OwnSpark(config.changefeed, config.spark)) as spark:
        spark.begin()
        from consumer.display import Display  # noqa: PLC0415 these take as long to load as Java to start
        from consumer.runner import Runner  # noqa: PLC0415

        return Runner(config, Display(), spark=spark, stopping=stopping).run(once=once, started=_STARTED)


@main.command()
@CONFIG
@JSON
@foreseen
def check(config: Path, as_json: bool) -> int:
    """Try config, Kafka, Redis, target and rights, and say per line what is fine or how to mend it.

    Changes nothing. Exits with the code of the first failure.

    \b
    Example:
      reconciler check orders.toml
    """
    from consumer.check import findings  # noqa: PLC0415

    found = []
    for finding in findings(load_config(config)):
        found.append(finding)
        if not as_json:
            say(finding.line(), lines=True)
    if as_json:
        say_json([finding.as_json() for finding in found])
    return next((one.error.exit_code for one in found if one.error is not None), 0)


@main.command()
@CONFIG
@JSON
@foreseen
def status(config: Path, as_json: bool) -> None:
    """Show checkpoint, lag, watermarks and offsets per partition, duplicates, DDLs.

    \b
    Example:
      reconciler status orders.toml --json
    """
    from consumer.status import status_of  # noqa: PLC0415

    found = status_of(load_config(config))
    if as_json:
        say_json(found)
    else:
        _print_status(found)


@main.command()
@click.option("--seconds", type=click.FloatRange(1, 3600), default=20.0, show_default=True, help="How long it writes.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed is another history.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep all files in this new directory.")
@click.option("--consistency", type=click.Choice(["snapshot", "transaction"]), default="snapshot", show_default=True)
@click.option("--raw/--split", help="Whether TiCDC sends an UPDATE that changes a key as it is.  [default: split]")
@click.option(
    "--dispatcher",
    type=click.Choice(["default", "table", "index-value", "columns", "ts"]),
    default="index-value",
    show_default=True,
    help="How TiCDC chooses partitions.",
)
@foreseen
def demo(**options: Any) -> int:
    """See it work: Kafka, Redis, an upstream, a kill in the middle; all embedded, nothing to install, nothing left.

    \b
    Example:
      reconciler demo --keep /tmp/demo --consistency transaction
    """
    from consumer.demo.play import Options, play  # noqa: PLC0415

    return play(Options(**options))


main.add_command(ddl)
main.add_command(serve)
main.add_command(load)
main.add_command(init)
main.add_command(tail)
main.add_command(completion)


@main.group()
def topic() -> None:
    """Decide about single topics."""


@topic.command()
@CONFIG
@click.argument("name")
@click.option("--undo", is_flag=True, help="Let it count again.")
@JSON
@foreseen
def retire(config: Path, name: str, undo: bool, as_json: bool) -> None:
    """Say that topic NAME is dead for good, so that it no longer holds back the others.

    Right only where TiCDC sends nothing to it any more. What is in it above the checkpoint is still applied; an event
    that comes later stops the changefeed (exit 3), unless Redis's ledger proves it a repetition. A running instance
    loses its leadership by this, takes it up again and goes on without the topic.

    \b
    Example:
      reconciler topic retire orders.toml cdc_shop_old
    """
    from consumer.operate import retire_topic  # noqa: PLC0415

    retire_topic(load_config(config), name, undo=undo)
    text = f"topic {name} counts again" if undo else f"topic {name} is retired"
    tell({"topic": name, "retired": not undo}, text, as_json=as_json)


main.add_command(progress)
main.add_command(quarantine)
main.add_command(verify)


def _age(seconds: float | None) -> str:
    return "none yet" if seconds is None else f"{seconds:,.0f} s ago"


def _held_back(source: dict[str, Any]) -> str:
    """Who holds the others back; where all partitions stand alike nobody does."""
    names = source.get("held_back_by", [])
    alike = len(names) == len(source.get("partitions", [])) and source.get("resolved_ts") is not None
    return "-" if alike else ", ".join(names) or "-"


def _print_status(found: dict[str, Any]) -> None:
    source = found["source"]
    say(f"changefeed   {found['changefeed']} -> {found['target']}")
    say(f"checkpoint   {found['checkpoint_ts']} ({found['checkpoint_time']} UTC), saved {found['updated_at']}")
    say(f"lag          {source.get('lag_seconds')} s behind the watermark")
    say(
        f"events       {found['events']}, duplicates {found['duplicates']} (proven {found['duplicates_proven']}),"
        f" filtered {found['filtered']}, quarantined {found['quarantined']},"
        f" rows written {found['rows_written']}, DDLs {found['ddls']}, windows {found['windows']}"
    )
    leader = found["leader"]
    alive = f", last sign of life {leader['silent_seconds']} s ago" if leader else ""
    say(f"leader       {leader['name'] if leader else '-'}, epoch {found['leader_epoch']}{alive}")
    say(f"stand-bys    {', '.join(one['name'] for one in found['stand_bys']) or '-'}")
    say(f"ledger       {found['ledger']['state']}")
    for one in found["drift"]:
        say(f"drift        {one['table']}: {one['missing']} rows were missing, {one['unexpected']} were unexpected")
    say(f"kafka        {source['state']}; held back by: {_held_back(source)}")
    for p in source.get("partitions", []):
        say(
            f"  {p['topic']}/{p['partition']}: offset {p['offset']} of {p['end_offset']},"
            f" watermark {p['resolved_time']}, {_age(p['watermark_age_seconds'])}"
        )
    for told in found["ddl_history"]:
        say(f"  DDL {ddl_line(told)}")


if __name__ == "__main__":
    main()
