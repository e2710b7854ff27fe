"""`reconciler serve`: many changefeeds in one process, their Open API, metrics, and where the status page hangs."""
