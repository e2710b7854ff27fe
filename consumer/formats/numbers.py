"""Numbers as other formats write them, as Canal-JSON has them; none is read as a float, so none loses a digit."""

import re
from decimal import Decimal

_NUMBER = re.compile(r"-?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
"""As Go prints a FLOAT or DOUBLE: a longer exponent would be none, and its digits fill the memory."""
_WHOLE = re.compile(r"-?\d{1,20}", re.ASCII)
_SHOWN = 40


def plain_number(text: str) -> str:
    """A number without an exponent. Raises ValueError."""
    if not _NUMBER.fullmatch(text):
        message = f"a number was expected, not {text[:_SHOWN]!r}"
        raise ValueError(message)
    return format(Decimal(text), "f") if "e" in text or "E" in text else text


def whole_number(text: str) -> str:
    """A whole number of up to 64 bits. Raises ValueError."""
    if not _WHOLE.fullmatch(text):
        message = f"a whole number was expected, not {text[:_SHOWN]!r}"
        raise ValueError(message)
    return text
