"""The files below a directory in which a running process makes and removes files and directories meanwhile."""

import os
from collections.abc import Iterator
from pathlib import Path


def files_below(place: Path) -> Iterator[Path]:
    """Each file that is there when its directory is read; a directory that goes away meanwhile has none.

    `Path.rglob` raises FileNotFoundError for such a directory; `os.walk` leaves it out.
    """
    for directory, _, names in os.walk(place):
        yield from (Path(directory, name) for name in names)
