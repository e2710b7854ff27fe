"""The command line: `reconciler run | check | status | serve | demo`; exit codes in `ordering.errors`."""

from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import structlog

from consumer.cli.completion import completion
from consumer.cli.ddl import ddl
from consumer.cli.init import init
from consumer.cli.load import load
from consumer.cli.process_start import process_start
from consumer.cli.progress import progress
from consumer.cli.quarantine import quarantine
from consumer.cli.serve import serve
from consumer.cli.shared import (
    CONFIG,
    JSON,
    Sectioned,
    WholeNumber,
    ask_first,
    foreseen,
    load_config,
    tell,
)
from consumer.cli.tail import tail
from consumer.cli.verify import audit, prove, verify
from consumer.runtime import logs
from consumer.runtime.advice import with_config
from consumer.runtime.pages import page_names, page_text
from consumer.runtime.signals import Stopped, StopRequest, stopped_by_signals
from consumer.runtime.terminal import say, say_json
from ordering.errors import ConfigError
from sinks.wording import plural

if TYPE_CHECKING:
    from consumer.config.model import Config
    from consumer.run.runner import RunOutcome
_STARTED = process_start()
log = structlog.get_logger()


@click.group(cls=Sectioned, context_settings={"help_option_names": ["-h", "--help"]})
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
    """Keep a relational database equal to a TiDB cluster, from the messages that TiCDC writes to Kafka, or its files.

    \b
    Examples:
      reconciler init orders.toml          write a config file, by asking
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
    stopping = StopRequest()
    with suppress(Stopped), stopped_by_signals(stopping):  # without a gap, from the config to the last line
        told = load_config(config)
        log.info("starting Spark and connecting", changefeed=told.changefeed, spark=told.spark.master)
        outcome = _reconcile(told, stopping, once=once)
        if as_json:
            say_json(outcome.as_json(), indent=False)
    return 0


def _reconcile(config: "Config", stopping: StopRequest, *, once: bool) -> "RunOutcome":
    """Run it, on Java that starts while the rest is loaded. Raises Stopped, which may come anywhere."""
    from consumer.spark.provider import OwnSpark  # noqa: PLC0415 Spark and drivers are loaded only where they are needed

    with closing(OwnSpark(config.changefeed, config.spark)) as spark:
        spark.begin()
        from consumer.proof.background import Scrubber  # noqa: PLC0415
        from consumer.run.runner import Runner  # noqa: PLC0415 these take as long to load as Java to start
        from consumer.run.terminal_progress import display_of  # noqa: PLC0415

        with display_of(config.changefeed) as display:
            runner = Runner(config, display, spark=spark, stopping=stopping, beside=Scrubber(config))
            return runner.run(once=once, started=_STARTED)


@main.command()
@CONFIG
@JSON
@foreseen
def check(config: Path, as_json: bool) -> int:
    """Check config, Kafka, Redis, target and rights; print one line each: ok, or what to do.

    Changes nothing. Exits with the code of the first failure.

    \b
    Example:
      reconciler check orders.toml
    """
    from consumer.operate.check import findings  # noqa: PLC0415

    found = []
    for finding in findings(load_config(config)):
        found.append(finding)
        if not as_json:
            say(
                finding.line(), lines=True, colour="red" if finding.error else "green" if finding.is_whole else "yellow"
            )
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
    from consumer.cli.status_text import status_lines  # noqa: PLC0415
    from consumer.operate.status import status_of  # noqa: PLC0415

    read = load_config(config)
    found = status_of(read)
    if as_json:
        say_json(found)
    else:
        for line in status_lines(found, read.limits.lease_seconds):
            say(with_config(line, config))


@main.command()
@CONFIG
@click.argument("tso", type=int)
@click.option("--timeout", type=click.FloatRange(0, 3600), default=30.0, show_default=True, help="Seconds.")
@JSON
@foreseen
def wait(config: Path, tso: int, timeout: float, as_json: bool) -> None:
    """Wait until the target holds every transaction with a commitTs up to TSO.

    Exits 0 once it does, 8 if it does not in time. TSO is the commitTs of your own transaction, which TiDB reports
    after COMMIT: SELECT @@tidb_last_txn_info (`reconciler help wait`). It works on any
    machine that reaches the target.

    \b
    Example:
      reconciler wait orders.toml 461234567890123456 --timeout 10
    """
    from consumer.library.wait import check_covered, wait_for  # noqa: PLC0415 drivers are loaded only where needed

    waited = wait_for(load_config(config), tso, timeout)
    told = {"changefeed": waited.changefeed, "tso": tso, "covered": waited.covered}
    if as_json:
        say_json({**told, "checkpoint_ts": waited.checkpoint_ts})
    check_covered(waited)
    if not as_json:
        say(f"applied: the checkpoint is {waited.checkpoint_ts}")


@main.command()
@click.option("--seconds", type=click.FloatRange(1, 3600), default=20.0, show_default=True, help="How long it writes.")
@click.option("--seed", type=int, default=1, show_default=True, help="Each seed gives another history.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep all files in this new directory.")
@click.option("--consistency", type=click.Choice(["snapshot", "transaction"]), default="snapshot", show_default=True)
@click.option("--raw/--split", help="Whether TiCDC sends a key-changing UPDATE as one event.  [default: split]")
@click.option(
    "--dispatcher",
    type=click.Choice(["default", "table", "index-value", "columns", "ts"]),
    default="index-value",
    show_default=True,
    help="How TiCDC chooses partitions.",
)
@foreseen
def demo(**options: Any) -> int:
    """Show how it works, with embedded Kafka, Redis and upstream, and a kill halfway; removes everything at the end.

    \b
    Example:
      reconciler demo --keep /tmp/demo --consistency transaction
    """
    from consumer.demo.run import DemoOptions, play  # noqa: PLC0415

    return play(DemoOptions(**options))


@main.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--minutes", type=click.FloatRange(0.1, 1440), default=60.0, show_default=True, help="How long it writes."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Each seed gives another history.")
@foreseen
def sandbox(**options: Any) -> int:
    """Start Kafka, Redis and a simulated upstream that keeps writing, to try all commands on; ends with Ctrl-C.

    The config is DIRECTORY/changefeeds/bank.toml. The page `tutorial` of `reconciler help` uses it.

    \b
    Example:
      reconciler sandbox /tmp/lab --minutes 30
    """
    from consumer.demo.sandbox import SandboxOptions, open_sandbox  # noqa: PLC0415

    return open_sandbox(SandboxOptions(**options))


@main.command("help")
@click.argument("topic", required=False)
@click.pass_context
@foreseen
def help_(context: click.Context, topic: str | None) -> None:
    """Show a page of the documentation, or list the pages.

    \b
    Example:
      reconciler help configuration
    """
    if topic is not None:
        say(page_text(topic), lines=True)
        return
    say("reconciler help TOPIC shows a page:")
    width = max(map(len, page_names()), default=0)
    for name, title in page_names().items():
        say(f"  {name:<{width}}  {title}")
    say("The commands:")
    say(main.get_help(context.parent or context), lines=True)


main.add_command(ddl)
main.add_command(serve)
main.add_command(load)
main.add_command(init)
main.add_command(tail)
main.add_command(completion)


@main.command()
@CONFIG
@click.option("--keep-hours", type=WholeNumber(min=0), default=168, show_default=True, help="Counted back from C.")
@JSON
@foreseen
def expire(config: Path, keep_hours: int, as_json: bool) -> None:
    """Delete the old snapshots of an Iceberg target, and files that no snapshot uses.

    Afterwards, tables can still be read as of every TSO of the last --keep-hours before the checkpoint, the lowest
    one if several changefeeds share the catalog. A file is deleted once it is a day old. The reconciler may keep
    running: if a window conflicts with the command, the window is applied again.

    \b
    Example:
      reconciler expire orders.toml --keep-hours 48
    """
    from consumer.operate.expiry import expire_snapshots  # noqa: PLC0415

    read = load_config(config)
    if not read.target.uri.startswith("iceberg"):
        raise ConfigError("only Iceberg has snapshots that expire", where="target.uri")
    found = expire_snapshots(read, keep_hours)
    text = (
        f"{plural(found.snapshots, 'snapshot')} of {plural(found.tables, 'table')} expired,"
        f" {plural(found.files, 'file')} of {found.bytes:,} bytes deleted"
    )
    told = {"tables": found.tables, "snapshots": found.snapshots, "files": found.files, "bytes": found.bytes}
    tell(told, text, as_json=as_json)


@main.command()
@CONFIG
@click.option("--tables", multiple=True, help="Only these tables, as in filter.rules; may be repeated.")
@click.option("--file-mib", type=WholeNumber(1, 1024), default=32, show_default=True, help="MiB of a merged file.")
@JSON
@foreseen
def compact(config: Path, tables: tuple[str, ...], file_mib: int, as_json: bool) -> None:
    """Merge small data files of an Iceberg target's tables into larger ones.

    Each table gets a snapshot with the same rows, the same checkpoint and fewer files; `reconciler expire` deletes the
    old ones later. The reconciler may keep running: if a window conflicts with the command, the window is applied
    again.

    \b
    Example:
      reconciler compact orders.toml --tables 'shop.*' --file-mib 64
    """
    from consumer.operate.compaction import compact_tables, shown  # noqa: PLC0415

    read = load_config(config)
    if not read.target.uri.startswith("iceberg"):
        raise ConfigError("only Iceberg has data files to be merged", where="target.uri")
    tell(*shown(compact_tables(read, tables, file_mib << 20)), as_json=as_json)


@main.group()
def topic() -> None:
    """Retire a topic that TiCDC no longer writes to, or let one count again."""


_NAME = click.argument("name")


@topic.command()
@CONFIG
@_NAME
@click.option("--yes", is_flag=True, help="Do not ask.")
@JSON
@foreseen
def retire(config: Path, name: str, yes: bool, as_json: bool) -> None:
    """Retire topic NAME, to which TiCDC will never write again, so that it no longer holds the others back.

    Use it only if TiCDC sends nothing to the topic any more. Events in it above the checkpoint are still applied. An
    event that arrives later stops the changefeed (exit code 3), unless the ledger in Redis proves that it is a
    repetition. A running instance loses its leadership, becomes the leader again and continues without the topic.
    On a terminal the command asks first. `topic return` takes it back.

    \b
    Example:
      reconciler topic retire orders.toml cdc_shop_old
    """
    from consumer.operate.decisions import retire_topic  # noqa: PLC0415

    read = load_config(config)
    question = f"Will TiCDC never write to topic {name} again? The others will no longer wait for it. Retire it?"
    ask_first(question, yes=yes)
    retire_topic(read, name)
    text = f"topic {name} is retired; `reconciler topic return {config} {name}` takes it back"
    tell({"topic": name, "retired": True}, text, as_json=as_json)


@topic.command("return")
@CONFIG
@_NAME
@JSON
@foreseen
def return_(config: Path, name: str, as_json: bool) -> None:
    """Let the retired topic NAME count again: the others wait for its watermarks as before.

    \b
    Example:
      reconciler topic return orders.toml cdc_shop_old
    """
    from consumer.operate.decisions import return_topic  # noqa: PLC0415

    return_topic(load_config(config), name)
    tell({"topic": name, "retired": False}, f"topic {name} counts again", as_json=as_json)


main.add_command(progress)
main.add_command(quarantine)
main.add_command(verify)
main.add_command(prove)
main.add_command(audit)
