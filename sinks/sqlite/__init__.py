"""SQLite: a directory, a file per database, one connection that has them all attached.

The progress file is the main database; with a rollback journal a commit over several attached files is atomic
(SQLite documentation, "Atomic Commit In SQLite", section 5.0).
"""
