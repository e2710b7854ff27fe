"""What we keep in the target beside the rows: progress, DDL log, quarantine, instances, loads."""
