"""Rows that are not in their message: in a claim-check file, or only upstream. Fetched late, for survivors only."""
