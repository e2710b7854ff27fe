"""The command `reconciler verify`."""

from pathlib import Path
from typing import Any

import click

from consumer.commands import CONFIG, JSON, foreseen
from consumer.config import load_config
from consumer.terminal import say, say_json
from ordering.errors import DifferencesError, UnjudgedError


@click.command()
@CONFIG
@click.option("--upstream", default="", help="The TiDB to compare with, as of C.  [default: source.upstream.uri]")
@click.option("--against", default="", help="Any database to compare with, as it is now: nobody may write to it.")
@click.option("--replay", is_flag=True, help="Compare with what the topics hold up to C, applied to an empty target.")
@click.option("--tables", multiple=True, help="Only these, as in filter.rules; may be given several times.")
@click.option("--threads", type=click.IntRange(1, 64), default=2, show_default=True, help="Chunks at once.")
@click.option("--chunk-rows", type=click.IntRange(min=100), default=50_000, show_default=True, help="Rows of a chunk.")
@click.option("--max-rows-per-second", type=click.FloatRange(min=0), default=0.0, help="Of each side.  [default: any]")
@click.option("--state", type=click.Path(path_type=Path), help="Keep in this file what is done, and go on from it.")
@click.option("--fix-sql", type=click.Path(path_type=Path), help="Write the SQL that mends the target's rows.")
@click.option("--limit", type=click.IntRange(min=0), default=100, show_default=True, help="Differences told per table.")
@JSON
@foreseen
def verify(config: Path, as_json: bool, **options: Any) -> None:
    """Compare the target with the upstream at the checkpoint; name the rows and columns that differ.

    Exits 0 if they are equal, 6 if they differ, 7 if not all could be compared (docs/verify.md). The reconciler may
    run on meanwhile.

    \b
    Examples:
      reconciler verify orders.toml --upstream tidb://reader@tidb.example:4000
      reconciler verify orders.toml --replay --tables 'shop.*' --fix-sql mend.sql
    """
    from consumer.verifying.run import Options, Verification  # noqa: PLC0415 drivers are loaded only where needed

    outcome = Verification(load_config(config), Options(**options)).run()
    if as_json:
        say_json(outcome.as_json())
    else:
        for line in outcome.lines():
            say(line)
    if outcome.differs:
        hint = "" if options["fix_sql"] else "--fix-sql FILE writes the SQL that mends the target"
        raise DifferencesError(outcome.fact, hint=hint)
    if not outcome.is_equal:
        fact = f"nothing differs, but not all could be compared: {'; '.join(outcome.plan.unjudged)}"
        raise UnjudgedError(fact, hint="docs/verify.md says what each one needs")
