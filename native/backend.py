"""setuptools as build backend, which also asks for a C compiler where the system has none: the wheel `ziglang`.

`TICDC_CORE=off` builds without the compiled core and asks for nothing.
"""

import os
import platform
import sys
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

sys.path.insert(0, str(Path(__file__).parent))

from build import system_compiler

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_Settings = dict[str, str | list[str] | None] | None
_WITH_WHEEL = {("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "x86_64"), ("darwin", "arm64")}
"""What ziglang has wheels for, and we run on."""


def get_requires_for_build_wheel(config_settings: _Settings = None) -> list[str]:
    """What to install before a wheel is built."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_compiler()]


def get_requires_for_build_editable(config_settings: _Settings = None) -> list[str]:
    """What to install before an editable wheel is built."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_compiler()]


def _compiler() -> list[str]:
    here = (sys.platform, platform.machine())
    needed = os.environ.get("TICDC_CORE") != "off" and not system_compiler() and here in _WITH_WHEEL
    return ["ziglang>=0.13"] if needed else []
