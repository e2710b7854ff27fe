"""From which source a core was built: its fingerprint is compiled in, and compared where the source lies beside.

A checkout is used where it lies, so a library can be older than the Python that calls it. `native/build.py` runs this
file by its path, with nothing installed: it imports the standard library only.
"""

import hashlib
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "native"
"""The core's source, in a checkout; an installed package has none beside it, only the library of its own wheel."""


def fingerprint(folder: Path = SOURCE) -> str:
    """Of all files that the library is made from, and of how; empty where they are not there."""
    if not (folder / "core.c").is_file():
        return ""
    made = hashlib.sha256()
    for path in sorted((*folder.glob("*.c"), *folder.glob("*.h"), folder / "build.py")):
        content = path.read_bytes()
        made.update(f"{path.name} {len(content)}\n".encode() + content)
    return made.hexdigest()[:16]
