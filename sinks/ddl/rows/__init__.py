"""What a DDL does to rows: converted values, defaults of new columns, rows of partitions."""
