"""The commands `reconciler verify`, `reconciler prove` and `reconciler audit`."""

from pathlib import Path
from typing import Any

import click

from consumer.cli.shared import CONFIG, JSON, WholeNumber, foreseen, load_config
from consumer.runtime.terminal import say, say_json
from ordering.errors import DifferencesError, UnjudgedError
from sinks.wording import plural


@click.command()
@CONFIG
@click.option("--upstream", default="", help="The TiDB to compare with, as of C.  [default: source.upstream.uri]")
@click.option("--against", default="", help="Any database to compare with, as it is now; must not change.")
@click.option("--replay", is_flag=True, help="Compare with what the topics hold up to C, applied to an empty target.")
@click.option("--tables", multiple=True, help="Only these tables, as in filter.rules; may be repeated.")
@click.option("--threads", type=WholeNumber(1, 64), default=2, show_default=True, help="Chunks in parallel.")
@click.option("--chunk-rows", type=WholeNumber(min=100), default=50_000, show_default=True, help="Rows per chunk.")
@click.option(
    "--max-rows-per-second", type=click.FloatRange(min=0), default=0.0, help="For each side.  [default: none]"
)
@click.option("--state", type=click.Path(path_type=Path), help="Save the state in this file, and resume from it.")
@click.option("--fix-sql", type=click.Path(path_type=Path), help="Write the SQL that repairs the target's rows.")
@click.option("--limit", type=WholeNumber(min=0), default=100, show_default=True, help="Differences shown per table.")
@JSON
@foreseen
def verify(config: Path, as_json: bool, **options: Any) -> None:
    """Compare the target with the upstream at the checkpoint; name the rows and columns that differ.

    Exits 0 if they are equal, 6 if they differ, 7 if not all could be compared (`reconciler help verify`). The
    reconciler may run on meanwhile.

    \b
    Examples:
      reconciler verify orders.toml --upstream tidb://reader@tidb.example:4000
      reconciler verify orders.toml --replay --tables 'shop.*' --fix-sql repair.sql
    """
    from consumer.verify.run import Verification, VerifyOptions  # noqa: PLC0415 drivers are loaded only where needed

    outcome = Verification(load_config(config), VerifyOptions(**options)).run()
    if as_json:
        say_json(outcome.as_json())
    else:
        for line in outcome.lines():
            say(line)
    if outcome.differs:
        hint = "" if options["fix_sql"] else "--fix-sql FILE writes the SQL that repairs the target"
        raise DifferencesError(outcome.fact, hint=hint)
    if not outcome.is_equal:
        fact = f"nothing differs, but not all could be compared: {'; '.join(outcome.plan.unjudged)}"
        raise UnjudgedError(fact, hint="`reconciler help verify` says what each one needs")


@click.command()
@CONFIG
@click.option(
    "--rebase", multiple=True, help="Take what these tables hold now as right, as in filter.rules; may be repeated."
)
@JSON
@foreseen
def prove(config: Path, as_json: bool, rebase: tuple[str, ...]) -> None:
    """Prove that the target holds what the last proof found in it, changed by the events since then.

    Exits 0 if all tables are equal, 6 if one differs, 7 if none differs but not all could be proven. The first proof
    compares a table only if the topics hold all its events, or its load has stored sums (`reconciler help proof`). It
    reads Kafka and the target, and stores its results in ticdc_reconciler.proof; the reconciler may keep running.

    \b
    Examples:
      reconciler prove orders.toml
      reconciler prove orders.toml --rebase 'shop.*' --json
    """
    from consumer.proof.report import ProofVerdict  # noqa: PLC0415 drivers are loaded only where needed
    from consumer.proof.run import Proving  # noqa: PLC0415

    proof = Proving(load_config(config), rebase).run()
    if as_json:
        say_json(proof.as_json())
    else:
        for line in proof.lines():
            say(line)
    if wrong := proof.having(ProofVerdict.DIFFERENT):
        hint = "`reconciler verify CONFIG --tables DATABASE.TABLE` names the rows, --fix-sql writes the repair"
        raise DifferencesError(f"what the events say is not in {plural(len(wrong), 'table')}", hint=hint)
    if proof.fault or proof.nothing or len(proof.having(ProofVerdict.EQUAL)) < len(proof.tables):
        raise UnjudgedError(
            "nothing differs, but not all could be proven", hint="`reconciler help proof` says when that is so"
        )


@click.command()
@CONFIG
@click.option("--limit", type=WholeNumber(1, 10_000), default=20, show_default=True, help="How many, newest first.")
@JSON
@foreseen
def audit(config: Path, limit: int, as_json: bool) -> None:
    """Show the windows applied last: range of commitTs, rows of each table, duration, and the leader's epoch.

    The list is kept if `target.audit` is true (`reconciler help proof`).

    \b
    Examples:
      reconciler audit orders.toml
      reconciler audit orders.toml --limit 1000 --json
    """
    from consumer.operate.audit import audit_of  # noqa: PLC0415 drivers are loaded only where needed

    read = load_config(config)
    found = audit_of(read, limit)
    if as_json:
        say_json(found)
        return
    if not found:
        say("no window is listed" + ("" if read.target.audit else "; target.audit = true keeps the list"))
    for line in found:
        say(_applied(line))


def _applied(line: dict[str, Any]) -> str:
    tables = line["rows_by_table"]
    told = "of which tables is not known" if tables is None else ", ".join(f"{t} {n:,}" for t, n in tables.items())
    return (
        f"{line['applied_at']}  ({line['above_ts']}, {line['checkpoint_ts']}]  epoch {line['epoch']}"
        f"  {line['duration_ms']:,} ms  {plural(line['rows'], 'row')}: {told}"
    )
