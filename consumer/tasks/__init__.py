"""What Spark's tasks do with a window: read and reduce ranges, then order, encode and write rows."""
