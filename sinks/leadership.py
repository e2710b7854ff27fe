"""Who leads a changefeed, beside the epochs: what a leader holds while it lives, where the database has such a thing.

Epochs decide: whoever raised it last may write, and the transaction of anyone else is rolled back. What is held tells a
stand-by when to try, and lets a new leader end the connection of the last one, whose locks everyone would wait for.
"""

from typing import Protocol


class Leadership(Protocol):
    """What a session holds. The leader holds the changefeed's name, a task that writes its part's."""

    def try_lead(self, changefeed: str) -> bool:
        """Hold what a leader holds, unless an instance that lives does; whether it is held now."""
        ...

    def is_led(self, changefeed: str) -> bool:
        """Whether another connection leads the changefeed now, as far as the target can tell."""
        ...

    def take(self, changefeed: str) -> None:
        """End the former leader's connection, if it still has one, and hold what a leader holds."""
        ...

    def fence(self, holder: str) -> None:
        """End the connection that holds this name, if there is one: what it runs must not go on. Then hold it here."""
        ...

    def release(self, holder: str) -> None:
        """Hold this name no more."""
        ...

    def close(self) -> None:
        """Let go of what does not end with the connection."""
        ...


class EpochsAlone:
    """Nothing is held and no connection is ended."""

    def try_lead(self, changefeed: str) -> bool:
        """Anyone may try."""
        del changefeed
        return True

    def is_led(self, changefeed: str) -> bool:
        """The target can't tell."""
        del changefeed
        return False

    def take(self, changefeed: str) -> None:
        """The epoch keeps out who is alive."""

    def fence(self, holder: str) -> None:
        """The permits keep out who is alive."""

    def release(self, holder: str) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""
