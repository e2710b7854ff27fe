"""Reading DDL statements as TiDB prints them, in one linear pass."""
