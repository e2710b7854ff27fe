"""Where fetched and unpacked things are kept between runs; all of it may be deleted while nothing runs."""

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_directory() -> Path:
    """`$TICDC_RECONCILER_CACHE`, else the user's cache directory by the XDG rules; created if it is missing."""
    directory = cache_place()
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def cache_place() -> Path:
    """Where the cache is, or would be."""
    if own := os.environ.get("TICDC_RECONCILER_CACHE"):
        return Path(own).expanduser().absolute()
    return user_cache_path("ticdc-reconciler")
