"""Which tables and columns a config has compared."""

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.config.routes import read_routes
from consumer.verify.plan import Accepts, Rules
from sinks.uri import parse_target_uri


def rules_of(config: Config, wanted: Accepts, *, keyless: bool) -> Rules:
    """The rules of a config; `keyless`: tables without a key are compared even if their rows are not replicated."""
    found, columns = read_filter(config.filter), read_routes(config.sink).columns
    target = parse_target_uri(config.target.uri).kind
    return Rules(
        accepts=found.tables,
        wanted=wanted,
        keyless=found.force_replicate or keyless,
        invalid_dates_are_null=target == "postgresql" and config.target.invalid_dates == "null",
        virtual=target in {"mysql", "mariadb", "tidb"},
        changed=columns.changes,
        masked=columns.is_masked,
    )
