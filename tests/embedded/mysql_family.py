"""What servers of MySQL's family share: how their data are made, how they are asked, and who may run them."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pymysql

from consumer.embedded.errors import EmbeddedError
from consumer.embedded.process import last_lines

_INSTALL_SECONDS = 300


def make_data(data: Path, title: str, command: Callable[[Path], list[str]]) -> None:
    """Make a server's data directory with its own program; one that is cut is made again by the next call.

    `command`: what makes it in a directory; its output becomes `install.log` beside. Raises EmbeddedError.
    """
    log = data.parent / "install.log"
    unfinished = data.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    with log.open("wb") as output:
        done = subprocess.run(
            command(unfinished),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            timeout=_INSTALL_SECONDS,
        )
    if done.returncode != 0:
        raise EmbeddedError(f"{title}'s data could not be made", detail=last_lines(log), hint=f"the log is {log}")
    unfinished.rename(data)


def answers(port: int, password: str = "") -> bool:
    """Whether a server lets root in; one that is not listening yet is asked again until the start's limit."""
    try:
        pymysql.connect(host="127.0.0.1", port=port, user="root", password=password, connect_timeout=5).close()
    except pymysql.err.OperationalError:
        return False
    return True


def as_user() -> list[str]:
    """The option without which a server refuses root; any other user needs none."""
    return ["--user=root"] if os.geteuid() == 0 else []
