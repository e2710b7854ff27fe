"""The pure core against models of a few lines."""
