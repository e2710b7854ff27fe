"""From a config to its target."""

from consumer.config import Config
from sinks.opening import open_target
from sinks.target import Target
from sinks.values import ValueRules


def target_of(config: Config) -> Target:
    """The target of a changefeed, not yet connected."""
    target = config.target
    rules = ValueRules(config.source.time_zone, target.invalid_dates, target.volatile_defaults)
    return open_target(target.uri, rules, target.cdc_write_source, concurrent_indexes=target.concurrent_indexes)
