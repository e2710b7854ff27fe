"""The view `ticdc_reconciler.applied`: for applications that want to know how far the target is.

`changefeed`, `checkpoint_ts`, `time` (the checkpoint's moment, in UTC). It shows a commit of the reconciler at the same
moment as its rows do: who reads it before the rows, or in one transaction with them, reads rows that are as new at
least. What else the progress table holds is none of an application's: SELECT on the view is all that it needs.
"""

VIEW = "applied"
MYSQL_VIEW = """CREATE VIEW {database}.applied AS SELECT changefeed, checkpoint_ts,
  TIMESTAMPADD(MICROSECOND, (checkpoint_ts >> 18) * 1000, '1970-01-01 00:00:00.000000') AS `time`
FROM {database}.checkpoint"""
POSTGRES_VIEW = """CREATE VIEW {database}.applied AS SELECT changefeed, checkpoint_ts,
  to_timestamp((checkpoint_ts >> 18) / 1000.0) AS time
FROM {database}.checkpoint"""
SQLITE_VIEW = """CREATE VIEW IF NOT EXISTS applied AS SELECT changefeed, checkpoint_ts,
  strftime('%Y-%m-%d %H:%M:%f', (checkpoint_ts >> 18) / 1000.0, 'unixepoch') AS time
FROM checkpoint"""
