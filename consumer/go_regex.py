"""Regular expressions as TiCDC takes them: Go's flavour, which is RE2's. Linear in time, whatever the text."""

import re2

from ordering.errors import ConfigError


def compiled(pattern: str, *, whose: str, case_sensitive: bool = True) -> "re2._Regexp[str]":
    """The expression, found anywhere in a text. `whose` names it in the ConfigError for what is none."""
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = case_sensitive
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise ConfigError(
            f"{whose} holds no regular expression: {why}",
            hint="the syntax is Go's (RE2): without look-around and back references",
        ) from error


def literally(text: str) -> str:
    """The expression that matches just this text."""
    return str(re2.escape(text))
