"""Starts a changefeed from a snapshot: reads what Dumpling wrote and loads it into the target.

    directory -> what there is     schemas -> DDL     sql_rows | csv_rows -> rows     values -> texts as messages hold
    write_file -> one file into the target, batch by batch     run -> the whole of it, and the progress

The form of the files is Dumpling's (TiDB documentation, "Dumpling Overview"; pingcap/tidb, folder `dumpling/export`).
"""
