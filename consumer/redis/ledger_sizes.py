"""How a ledger is cut: apart from it, so that whoever names a size loads no Redis."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LedgerSizes:
    """How a ledger is cut into values, and how much of it is kept."""

    part: int = 1 << 17
    """Fingerprints in one value."""
    merged: int = 1 << 14
    """Fingerprints up to which neighbouring windows are kept as one."""
    kept_windows: int = 2048
    """Windows that stay listed."""
    kept_bytes: int = 256 << 20
    """What their values may take; the last window always stays."""

    @property
    def most_listed(self) -> int:
        """How many may be listed before none of them is believed."""
        return 4 * self.kept_windows


MEASURED = LedgerSizes()
"""What a run takes."""
