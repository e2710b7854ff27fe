"""Spark: its context, its daemon, its jobs. What else imports PySpark is listed in `tests/test_architecture.py`."""
