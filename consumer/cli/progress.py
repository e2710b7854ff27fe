"""The commands `reconciler progress show | export | import | reset | rewind`."""

from pathlib import Path
from typing import Any

import click
import orjson

from consumer.cli.shared import CONFIG, JSON, CommitTs, foreseen, load_config, tell
from consumer.runtime.terminal import say, say_json
from ordering.errors import ConfigError
from ordering.timestamps import utc_text

_YES = click.option("--yes", is_flag=True, help="Make the change. Without it, the command only checks what it can.")
_SLACK_S = 600.0


@click.group()
def progress() -> None:
    """Show a changefeed's progress, or change it while no instance runs (`reconciler help recovery`)."""


@progress.command()
@CONFIG
@JSON
@foreseen
def show(config: Path, as_json: bool) -> None:
    """Show the progress as it is stored in the target.

    \b
    Example:
      reconciler progress show orders.toml --json
    """
    from consumer.operate.progress import shown  # noqa: PLC0415 drivers are loaded only where they are needed

    found = shown(load_config(config))
    if as_json:
        say_json(found)
        return
    again = found["applied_again_to"]
    say(f"changefeed   {found['changefeed']} -> {found['target']}")
    say(f"checkpoint   {found['checkpoint_ts']} ({found['checkpoint_time']} UTC), saved {found['updated_at']}")
    if again is not None:
        say(f"rewound      all up to {again} ({utc_text(again)} UTC) will be applied once more")
    say(f"leader       epoch {found['epoch']}, {'alive' if found['leader_lives'] else 'none'}")
    for topic, partitions in found["offsets"].items():
        for number, at in partitions.items():
            say(f"  {topic}/{number}: offset {at['offset']}, watermark {utc_text(at['watermark'] or 0)}")


@progress.command()
@CONFIG
@foreseen
def export(config: Path) -> None:
    """Print the progress as JSON for `progress import`; keep it with a backup that lacks `ticdc_reconciler`.

    \b
    Example:
      reconciler progress export orders.toml > orders.progress.json
    """
    from consumer.operate.progress import exported  # noqa: PLC0415

    say_json(exported(load_config(config)))


@progress.command("import")
@CONFIG
@click.argument("file", type=click.Path(path_type=Path))
@_YES
@JSON
@foreseen
def import_(config: Path, file: Path, yes: bool, as_json: bool) -> None:
    """Set the progress to the one in FILE, for a target restored from a backup of the moment of the export.

    \b
    Example:
      reconciler progress import orders.toml orders.progress.json --yes
    """
    from consumer.operate.progress import import_progress, read_export  # noqa: PLC0415

    read = load_config(config)
    export = read_export(read, _read(file))
    named = _named(export.progress.checkpoint_ts)
    _sure(yes, f"the target counts as holding all up to {named}")
    import_progress(read, export)
    tell(_at(export.progress.checkpoint_ts), f"imported: checkpoint {named}", as_json=as_json)


@progress.command()
@CONFIG
@_YES
@JSON
@foreseen
def reset(config: Path, yes: bool, as_json: bool) -> None:
    """Forget the progress: the next run begins at `start-ts`. For a target that was emptied or loaded from a dump.

    \b
    Example:
      reconciler progress reset orders.toml --yes
    """
    from consumer.operate.progress import reset_progress  # noqa: PLC0415

    read = load_config(config)
    _sure(yes, f"the progress is forgotten, and the target counts as holding all up to start-ts {read.source.start_ts}")
    reset_progress(read)
    start_ts = read.source.start_ts
    tell(_at(start_ts), f"reset: the next run begins at start-ts {start_ts}", as_json=as_json)


@progress.command()
@CONFIG
@click.argument("commit_ts", type=CommitTs(min=0))
@click.option(
    "--slack",
    type=click.FloatRange(min=0),
    default=_SLACK_S,
    show_default=True,
    help="Seconds by which the clocks of upstream and Kafka may differ.",
)
@_YES
@JSON
@foreseen
def rewind(config: Path, commit_ts: int, slack: float, yes: bool, as_json: bool) -> None:
    """Go back to COMMIT_TS (a TSO): the next run applies everything above it once more, as one unit.

    The result is right whatever the target holds of it, because rows are replaced and deleted by key. It is refused if
    a DDL was executed in between, if retention deleted messages, and for tables without a valid index.

    \b
    Example:
      reconciler progress rewind orders.toml 463139414630400001 --yes
    """
    from consumer.operate.progress import rewind_progress  # noqa: PLC0415

    _sure(yes, f"all above {_named(commit_ts)} will be applied once more")
    after = rewind_progress(load_config(config), commit_ts, slack)
    high = after.window.high if after.window else commit_ts
    text = f"rewound: the next run applies ({_named(commit_ts)}, {_named(high)}] once more"
    tell({**_at(commit_ts), "applied_again_to": high}, text, as_json=as_json)


def _named(ts: int) -> str:
    return f"{ts} ({utc_text(ts)} UTC)"


def _at(ts: int) -> dict[str, Any]:
    return {"checkpoint_ts": ts, "checkpoint_time": utc_text(ts)}


def _sure(yes: bool, what: str) -> None:
    if not yes:
        raise ConfigError(f"this changes the progress: {what}", hint="use --yes to make the change")


def _read(file: Path) -> Any:
    try:
        return orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise ConfigError(f"can't read the export {file}: {error}") from error
