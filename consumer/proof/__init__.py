"""Proof: whether a target holds what it held at the last proof, and what the events since then say, no more."""
