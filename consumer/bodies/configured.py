"""From a config to what fetches bodies; apart from the fetching, for tasks load that and need no config."""

from consumer.bodies.claims import Claims
from consumer.bodies.fetching import Bodies
from consumer.bodies.upstream import Upstream
from consumer.config import Config
from sinks.uri import parse_upstream_uri


def bodies_of(config: Config) -> Bodies:
    """What a config says of them."""
    section, uri = config.source.claim_check, config.source.upstream.uri
    claims = Claims(tuple(section.locations), section.map, section.options, config.limits.message_bytes)
    return Bodies(claims, Upstream(parse_upstream_uri(uri), config.source.time_zone) if uri else None)
