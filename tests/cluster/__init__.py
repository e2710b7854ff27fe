"""The reconciler on a standalone Spark cluster: a master and workers, as PySpark brings them."""
