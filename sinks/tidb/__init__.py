"""TiDB, as a member of the MySQL family: pessimistic transactions, bounded in size; DDL as it came."""
