"""What there is to read: topics, partitions, watermarks, and whether a log is still the one that was read."""
