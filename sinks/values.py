"""How values are read that a message alone does not settle."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ValueRules:
    """`time_zone`: the one of TIMESTAMP texts. `invalid_dates`: zero and partial dates where the target has none."""

    time_zone: str = "UTC"
    invalid_dates: Literal["error", "null"] = "error"
