"""The compiled core, as part of the package: built where there is a C compiler, left out where there is none."""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent / "native"))

from build import BuildError, build

_NAME = "consumer.native._core"


class BuildCore(build_ext):
    """Builds the library without Python's headers. An installation without it is whole: it is only slower."""

    def get_ext_filename(self, fullname: str) -> str:
        """One name on every platform, with which it is loaded."""
        return str(Path(*fullname.split("."))) + ".so"

    def build_extension(self, ext: Extension) -> None:
        """Build, or say why not."""
        if os.environ.get("TICDC_CORE") == "off":
            return
        try:
            build(Path(self.get_ext_fullpath(ext.name)))
        except BuildError as error:
            self.warn(f"the compiled core is not built, Python does its work: {error}")


class WithPages(build_py):
    """Adds the documentation, which `reconciler help TOPIC` shows."""

    def run(self) -> None:
        """Build, then copy what is no module."""
        super().run()
        if self.editable_mode:
            return  # it is read where it lies
        pages = Path(self.build_lib, "consumer", "pages")
        pages.mkdir(parents=True, exist_ok=True)
        for page in Path(__file__).parent.glob("docs/*.md"):
            self.copy_file(str(page), str(pages / page.name))


class AnyPython(bdist_wheel):
    """The library depends on the platform, not on Python's version."""

    def get_tag(self) -> tuple[str, str, str]:
        """See `bdist_wheel`."""
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[Extension(_NAME, sources=["native/core.c"], optional=True)],
    cmdclass={"build_ext": BuildCore, "build_py": WithPages, "bdist_wheel": AnyPython},
)
