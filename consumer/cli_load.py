"""The command `reconciler load`."""

import sys
from pathlib import Path

import click

from consumer.commands import CONFIG, foreseen
from consumer.config import load_config
from consumer.terminal import say, say_json


@click.command()
@CONFIG
@click.option(
    "--dump", "directory", required=True, type=click.Path(path_type=Path), help="The directory that Dumpling wrote."
)
@click.option("--workers", type=click.IntRange(1, 64), help="Processes that write.  [default: limits.writers]")
@click.option("--time-zone", default="", help="Of TIMESTAMP values in the dump.  [default: source.time-zone]")
@click.option(
    "--csv-separator", default=",", show_default=True, help="As it was said to Dumpling; so are the next ones."
)
@click.option("--csv-delimiter", default='"', show_default=True, help='"" is none.')
@click.option("--csv-null-value", default=r"\N", show_default=True, help="What stands for NULL.")
@click.option("--no-header", is_flag=True, help="The files of CSV do not name their columns.")
@click.option("--no-escape-backslash", is_flag=True, help="Dumped with --escape-backslash=false.")
@click.option("--ignore", "ignored", multiple=True, help="Files that nothing is done with, such as '*.log'; several.")
@click.option("--checksums", type=click.Path(path_type=Path), help="What `sha256sum *` wrote: proof that all is whole.")
@click.option("--no-rows", is_flag=True, help="The dump holds definitions alone, and upstream no rows.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
@foreseen
def load(
    config: Path,
    directory: Path,
    workers: int | None,
    time_zone: str,
    csv_separator: str,
    csv_delimiter: str,
    csv_null_value: str,
    no_header: bool,
    no_escape_backslash: bool,
    ignored: tuple[str, ...],
    checksums: Path | None,
    no_rows: bool,
    as_json: bool,
) -> None:
    """Load a dump of Dumpling into the target of a new changefeed, which then begins at the dump's TSO (docs/load.md).

    Run again after a crash or a stop, it goes on where it was. `run` refuses to begin before the load is done.

    \b
    Examples:
      reconciler load orders.toml --dump /data/dump
      reconciler load orders.toml --dump /data/dump --workers 4 --json
    """
    from consumer.loading.load import Load, LoadOptions  # noqa: PLC0415 drivers are loaded only where they are needed
    from consumer.loading.separated import Form  # noqa: PLC0415
    from consumer.loading.showing import LoadDisplay, stopped_by_signals  # noqa: PLC0415

    read = load_config(config)
    form = Form(csv_separator, csv_delimiter, csv_null_value, header=not no_header, escapes=not no_escape_backslash)
    writers = workers or read.limits.writers
    options = LoadOptions(directory, writers, form, time_zone, ignored, checksums, no_rows)
    with LoadDisplay() as show:
        work = Load(read, options, show)
        with stopped_by_signals(work.stopping):
            outcome = work.run()
    said = "loaded" if outcome.finished else "stopped; the same command goes on"
    if as_json:
        say_json(outcome.as_json(), indent=False)
    else:
        say(
            f"{said}: {outcome.rows} rows, {outcome.files} files, {outcome.tables} tables, {outcome.views} views in"
            f" {outcome.seconds:.1f} s; checkpoint {outcome.checkpoint_ts if outcome.finished else 'not set yet'}"
        )
    sys.stdout.flush()
