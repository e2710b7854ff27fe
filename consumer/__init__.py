"""The reconciler: reads TiCDC's messages from Kafka, or its files, on Spark and applies them to a target.

`pipeline/round.py` is a round, top to bottom: probe, plan, read, reduce, order, apply, publish.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consumer.library.feed import ChangeWindow, Ddl, windows
    from consumer.library.wait import Waited, wait_for

__all__ = ["ChangeWindow", "Ddl", "Waited", "wait_for", "windows"]
_WAITING = {"Waited", "wait_for"}


def __getattr__(name: str) -> Any:
    """The library, loaded when it is asked for: tasks and commands do without."""
    if name not in __all__:
        raise AttributeError(name)
    module = import_module("consumer.library.wait" if name in _WAITING else "consumer.library.feed")
    return getattr(module, name)
