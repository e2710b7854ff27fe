"""Builds the compiled core: one C file, one library, no header of Python's.

    python native/build.py [LIBRARY] [--zig] [FLAG ...]

With the system's compiler (`CC`, else `cc`), else with the one in the wheel `ziglang`. The library is loaded by ctypes,
so it fits every Python of its platform.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "core.c"
OF_SOURCE = HERE.parent / "consumer" / "native" / "source.py"
LIBRARY = HERE.parent / "consumer" / "native" / "_core.so"
_FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-fstack-protector-strong", "-pthread")


class BuildError(Exception):
    """It can't be built here."""


def system_compiler() -> list[str]:
    """The command of the system's C compiler; empty where there is none."""
    wanted = shlex.split(os.environ.get("CC", "cc"))
    return wanted if wanted and shutil.which(wanted[0]) else []


def zig_compiler() -> list[str]:
    """The command of Zig's C compiler, where its wheel is installed; else empty."""
    return [sys.executable, "-m", "ziglang", "cc"] if find_spec("ziglang") else []


def build(library: Path, compiler: Sequence[str] = (), flags: Sequence[str] = ()) -> None:
    """Build the library, with the compiler that is there. Raises BuildError."""
    command = [*(compiler or system_compiler() or zig_compiler())]
    if not command:
        raise BuildError("there is neither a C compiler nor the package ziglang")
    library.parent.mkdir(parents=True, exist_ok=True)
    source = f'-DCORE_SOURCE="{run_path(str(OF_SOURCE))["fingerprint"](HERE)}"'
    made = library.with_suffix(f".{os.getpid()}.tmp")
    try:
        words = [*command, *_FLAGS, source, *flags, str(SOURCE), "-o", str(made)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 the compiler that was chosen
        if done.returncode != 0:
            raise BuildError(f"{shlex.join(command)} failed:\n{done.stderr.strip()}")
        made.replace(library)  # at once: another process may have the old one loaded
    except OSError as error:
        raise BuildError(f"{shlex.join(command)}: {error}") from error
    finally:
        made.unlink(missing_ok=True)


def main(words: Sequence[str]) -> int:
    """Build as the command line says."""
    paths = [word for word in words if not word.startswith("-")]
    flags = [word for word in words if word.startswith("-") and word != "--zig"]
    try:
        build(Path(paths[0]) if paths else LIBRARY, zig_compiler() if "--zig" in words else (), flags)
    except BuildError as error:
        print(f"the compiled core is not built, Python does its work: {error}", file=sys.stderr)  # noqa: T201 a command
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
