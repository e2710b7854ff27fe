"""Iceberg as a target, with an SQL catalog: data files, all tables' pointers and the progress in one transaction."""
