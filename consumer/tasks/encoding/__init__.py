"""Rows of a bucket to chunks: in Python, and with the compiled core."""
