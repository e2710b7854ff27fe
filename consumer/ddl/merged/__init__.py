"""DDLs of tables that are merged with others in one table of the target."""
