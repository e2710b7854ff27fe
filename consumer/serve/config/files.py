"""Writing the directory's files: whole or not at all, readable by their owner only."""

import os
import tempfile
from pathlib import Path

from consumer.serve.api.errors import ConflictError


def write(path: Path, text: str) -> None:
    """Put a file in the place of the one that is there. Raises ConflictError where the directory can't be written."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # made with mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        _sync(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error


def remove(path: Path) -> None:
    """Delete a file. Raises ConflictError where that can't be done."""
    try:
        path.unlink(missing_ok=True)
        _sync(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unwritable(path: Path, error: OSError) -> ConflictError:
    hint = "changes through the API are kept in this directory: let the server's user write there"
    return ConflictError(f"the file can't be written: {error.strerror}", where=str(path), hint=hint)
