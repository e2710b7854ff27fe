"""DDL on PostgreSQL."""
