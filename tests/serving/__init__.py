"""`reconciler serve`: its API, metrics, access, files; in this process without Spark, and as a process of its own."""
