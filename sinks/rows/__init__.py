"""Rows on their way into a target: schema, values, chunks, accounting. What all dialects share."""
