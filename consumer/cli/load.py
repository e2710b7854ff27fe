"""The command `reconciler load`."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from consumer.cli.shared import CONFIG, WholeNumber, foreseen, load_config
from consumer.runtime.terminal import say, say_json
from sinks.wording import plural

_SHOWN = 10


@click.command()
@CONFIG
@click.option(
    "--dump", "directory", required=True, type=click.Path(path_type=Path), help="The directory that Dumpling wrote."
)
@click.option("--workers", type=WholeNumber(1, 64), help="Number of processes.  [default: limits.writers]")
@click.option("--time-zone", default="", help="Zone of TIMESTAMP values.  [default: source.time-zone]")
@click.option("--csv-separator", default=",", show_default=True, help="As in the call of Dumpling; also the next four.")
@click.option("--csv-delimiter", default='"', show_default=True, help='"": none.')
@click.option("--csv-null-value", default=r"\N", show_default=True, help="The text for NULL.")
@click.option("--no-header", is_flag=True, help="CSV files have no header line.")
@click.option("--no-escape-backslash", is_flag=True, help="Dumped with --escape-backslash=false.")
@click.option("--ignore", "ignored", multiple=True, help="Files to ignore, such as '*.log'; may be repeated.")
@click.option("--checksums", type=click.Path(path_type=Path), help="Output of `sha256sum *`, to check all files.")
@click.option("--no-rows", is_flag=True, help="Accept a dump that contains only definitions.")
@click.option("--sums", is_flag=True, help="Take sums of the rows, for the first `prove` to compare with.")
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
    sums: bool,
    as_json: bool,
) -> None:
    """Load a Dumpling dump into the target of a new changefeed, which then begins at the dump's TSO (docs/load.md).

    After a crash or a stop, run it again to continue. `run` refuses to start before the load is complete.

    \b
    Examples:
      reconciler load orders.toml --dump /data/dump
      reconciler load orders.toml --dump /data/dump --workers 4 --json
    """
    from consumer.load.csv_rows import CsvForm  # noqa: PLC0415
    from consumer.load.progress_bar import LoadDisplay, stopped_by_signals  # noqa: PLC0415
    from consumer.load.run import Load, LoadOptions  # noqa: PLC0415 drivers are loaded only where they are needed

    read = load_config(config)
    form = CsvForm(csv_separator, csv_delimiter, csv_null_value, header=not no_header, escapes=not no_escape_backslash)
    writers = workers or read.limits.writers
    options = LoadOptions(directory, writers, form, time_zone, ignored, checksums, no_rows, sums)
    with LoadDisplay() as show:
        work = Load(read, options, show)
        with stopped_by_signals(work.stopping):
            outcome = work.run()
    said = "loaded" if outcome.finished else "stopped; the same command goes on"
    if as_json:
        say_json(outcome.as_json(), indent=False)
    else:
        say(
            f"{said}: {plural(outcome.rows, 'row')}, {plural(outcome.files, 'file')},"
            f" {plural(outcome.tables, 'table')}, {plural(outcome.views, 'view')} in"
            f" {outcome.seconds:.1f} s; checkpoint {outcome.checkpoint_ts if outcome.finished else 'not set yet'}"
            f"{_left(outcome.left_out)}"
        )
    sys.stdout.flush()


def _left(names: Sequence[str]) -> str:
    """Of which tables and files nothing was loaded."""
    more = len(names) - _SHOWN
    told = ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"; left out: {told}" if names else ""
