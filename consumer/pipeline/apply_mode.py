"""How a window is applied, by the consistency that is configured and by what a crash left begun. Pure."""

from dataclasses import dataclass

from ordering.window import Window


@dataclass(frozen=True, slots=True)
class ApplyMode:
    """`net`: only net effects count; `by_tasks`: tasks write the rows; `begun`: they may have written some already.

    Rows that tasks have begun to write go through buckets however few they are: the permits of `row` are theirs.
    """

    net: bool
    by_tasks: bool
    begun: bool


def mode_of(consistency: str, recorded: Window | None) -> ApplyMode:
    """The mode of the next window. `recorded`: one that is to be finished as it was recorded before a crash.

    A rewound window (`ordering.rewind`) is applied once more as one unit, so by net effects, also in `transaction`.
    """
    begun = recorded is not None and (consistency == "row" or not recorded.rewound)
    return ApplyMode(
        net=recorded is not None or consistency != "transaction", by_tasks=begun or consistency == "row", begun=begun
    )


def library_mode(consistency: str, _recorded: Window | None) -> ApplyMode:
    """For the library, whose rows stay in their buckets until the caller reads them."""
    return ApplyMode(net=consistency != "transaction", by_tasks=True, begun=True)
