"""DDL on the MySQL family."""
