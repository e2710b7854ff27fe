"""Relational targets: one small interface, a folder per dialect.

`target.py` holds the interface and the one way in which a unit is applied (deletes, writes, progress, commit);
`schema.py` what a sink knows of its tables; `chunk.py` and `spool.py` how rows travel from Spark's tasks to the
connection; `ddl/` reads and translates upstream DDL. A sink knows nothing of Kafka, Spark or Redis.
"""
