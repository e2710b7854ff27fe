"""A target that is not in the product, as docs/development/new-target.md adds one: DuckDB, in one file."""
