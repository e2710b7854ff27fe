"""Which topics `source.topics` means."""

import re
from collections.abc import Callable, Iterable

from ordering.errors import ConfigError


def matcher(wanted: Iterable[str]) -> Callable[[str], bool]:
    """Whether a topic's name is one of those of `source.topics`. Raises ConfigError for a bad expression."""
    names = list(wanted)
    if not any(name.startswith("~") for name in names):
        return set(names).__contains__
    if len(names) > 1:
        raise ConfigError("source.topics holds a ~regular expression beside other entries", hint="write one entry")
    try:
        pattern = re.compile(names[0][1:])
    except re.error as error:
        raise ConfigError(f"source.topics: {names[0]!r} is no regular expression: {error}") from error
    return lambda name: pattern.fullmatch(name) is not None
