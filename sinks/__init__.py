"""Relational targets: one small interface, a folder per dialect.

`target.py` holds a target and the one way in which a unit is applied (deletes, writes, progress, commit); `dialect.py`
what it is made of: a session, leadership, rows, DDL, comparison. `bookkeeping/` is what a target keeps about
changefeeds; `rows/` how rows travel from Spark's tasks to the connection, and what a sink knows of its tables; `ddl/`
reads upstream DDL. A sink knows nothing of Kafka, Spark or Redis.
"""
