"""Spark: its context, its daemon, its jobs. The only package that imports PySpark, the library apart."""
