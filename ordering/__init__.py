"""The pure core: what order, what is a duplicate, what a window holds, what is left of a row.

Nothing here knows Spark, Kafka, Redis, SQL, a clock or a file: decisions are functions from values to values, so that
every rule can be tested against a small model in milliseconds. The rules R1 to R10 that docstrings name are listed in
the project's documentation of guarantees.
"""
