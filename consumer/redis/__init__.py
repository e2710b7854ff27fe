"""Redis: the ledger of what was applied, and live status. Losing it loses nothing (R9)."""
