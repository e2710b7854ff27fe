"""What goes wrong, and when: decided by the seed, at most so often in one history that it still ends."""

import random
from dataclasses import dataclass, field


class Crash(Exception):  # noqa: N818 not an error: the process is gone
    """The process died here."""


@dataclass(slots=True)
class Faults:
    """Rates per kind of fault; `left` bounds them all together."""

    chance: random.Random
    rates: dict[str, float] = field(default_factory=dict)
    left: int = 0
    happened: list[str] = field(default_factory=list)

    def happens(self, kind: str) -> bool:
        """Whether a fault of this kind happens now."""
        rate = self.rates.get(kind, 0.0)
        if not rate or not self.left or self.chance.random() >= rate:
            return False
        self.left -= 1
        self.happened.append(kind)
        return True

    def crash(self, kind: str, where: str) -> None:
        """Die here, if the seed says so."""
        if self.happens(kind):
            self.happened[-1] = f"{kind} at {where}"
            raise Crash(where)
