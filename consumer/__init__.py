"""The reconciler: reads TiCDC's Canal-JSON from Kafka on Spark and applies it to a target.

`pipeline.py` is a round, top to bottom: probe, plan, read, reduce, order, apply, publish.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consumer.feed import Ddl, Window, windows

__all__ = ["Ddl", "Window", "windows"]


def __getattr__(name: str) -> Any:
    """The library, loaded when it is asked for: tasks and commands do without."""
    if name not in __all__:
        raise AttributeError(name)
    from consumer import feed  # noqa: PLC0415

    return getattr(feed, name)
