"""Clients with threads of their own, in a process that is forked from theirs: it has the objects and not the threads.

To use one there, to close it or to free it waits for these threads for ever. So each process connects for itself, and
what it was born with is never freed. It must be forked while no thread looks up a name: libc's lock of that would stay
closed in it, and its client would find no broker (SourceUnreachableError after `SILENCE_S`).
"""

import ctypes
import os
from typing import Any
from weakref import WeakSet


class ClientHolder:
    """Who holds such a client."""

    _client: Any = None
    _process = 0

    def _hold(self, client: Any) -> None:
        """Hold a client that this process has made."""
        self._client, self._process = client, os.getpid()
        _holders.add(self)

    @property
    def _is_forked(self) -> bool:
        """Whether the client is another process's."""
        return self._process != os.getpid()

    def _leave(self) -> None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._client))


_holders: WeakSet[ClientHolder] = WeakSet()


def _leave_clients() -> None:
    """Run in each process that is forked: nobody can free a client there."""
    for holder in list(_holders):
        holder._leave()  # noqa: SLF001 ours


os.register_at_fork(after_in_child=_leave_clients)
