"""What becomes of a DDL whose turn has come: decided by the target's tables, done, and noted where it fails."""
