"""Becomes a server that dies with its parent: `python die_with_parent.py PARENT_PID COMMAND...`.

Linux can send a process a signal when its parent goes (PR_SET_PDEATHSIG), which covers SIGKILL too, where no clean-up
code of the parent runs. The setting survives exec, so this small program asks for it and turns into the server. A
function between fork and exec would do the same but may deadlock in a parent that has threads. Elsewhere than on Linux
the server is started plainly.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Ask the kernel for SIGKILL at the parent's end; leave at once if the parent is gone already."""
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        sys.exit("the process that wanted this server is gone")


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - a shell between would be one more process to stop
