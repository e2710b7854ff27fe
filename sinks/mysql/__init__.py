"""MySQL and MariaDB over PyMySQL: LOAD DATA for many rows, multi-row statements for few, DDL with recorded intents."""
