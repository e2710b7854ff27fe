"""Which topics `source.topics` means."""

import re
from collections.abc import Callable, Iterable

from consumer.go_regex import compiled
from ordering.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def matcher(wanted: Iterable[str]) -> Callable[[str], bool]:
    """Whether a topic's name is one of those of `source.topics`. Raises ConfigError for a bad expression."""
    names = list(wanted)
    if not any(name.startswith("~") for name in names):
        wrong = [name for name in names if not _NAME.fullmatch(name)]
        if wrong:
            hint = f"it holds letters, digits, '.', '_' and '-'; a regular expression begins with ~: {'~' + wrong[0]!r}"
            raise ConfigError(f"{wrong[0]!r} is no name of a topic", hint=hint)
        return set(names).__contains__
    if len(names) > 1:
        raise ConfigError(
            "a ~regular expression stands beside other entries", hint='write one entry, as in ["~(cdc_a|cdc_b)"]'
        )
    pattern = compiled(names[0][1:], whose=repr(names[0]))  # linear: names and expression may be anybody's
    return lambda name: pattern.fullmatch(name) is not None


def topic_name(name: str) -> str:
    """A name that a topic can have, or none. Raises ConfigError."""
    if name and not _NAME.fullmatch(name):
        raise ConfigError(f"{name[:100]!r} is no name of a topic", hint="it holds letters, digits, '.', '_' and '-'")
    return name
