"""Starts a changefeed from a snapshot: reads what Dumpling wrote and loads it into the target.

    directory -> what there is     schemas -> DDL     inserts | separated -> rows     values -> texts as messages hold
    files -> one file into the target, batch by batch     load -> the whole of it, and the progress

The form of the files is Dumpling's (TiDB documentation, "Dumpling Overview"; pingcap/tidb, folder `dumpling/export`).
"""
