"""DDL on SQLite."""
