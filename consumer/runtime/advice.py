"""Advice with commands in it, as a person can paste them."""

import re
import shlex
from pathlib import Path

_ADVISED = re.compile(r"(`reconciler [a-z ]+?) CONFIG\b")


def with_config(text: str, config: Path | None) -> str:
    """Advice whose commands name the changefeed's config file, if it is known, so that they can be pasted."""
    return text if config is None else _ADVISED.sub(lambda found: f"{found[1]} {shlex.quote(str(config))}", text)
