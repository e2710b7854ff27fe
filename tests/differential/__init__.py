"""What DDL does to rows, compared with TiDB: random scripts of types, defaults, conversions, partitions and spellings.

    python -m tests.differential [--recorder PROGRAM] [--seed N] [--count N | --minutes N] [--keep DIR]
                                 [--targets sqlite,mariadb,postgres,tidb] [--recordings DIR]
                                 [--consistencies snapshot,transaction,row] [--shrink N] [--together N]

PROGRAM as in `tests.histories`; without one what `--recordings` holds is played again. Fifty scripts are recorded at
once and played one by one, each into an empty target by a changefeed of its own; the next ones are recorded meanwhile.
The consistencies take turns: each script is played in one. With `--together` N scripts are played by one changefeed.
Most scripts send one table through many statements of several clauses (`evolving`): what a script costs is its DDLs.
A script that leaves a target with other cells than TiDB, or stops it for a reason that `explained` does not know, is
made as small as it gets while it still does, and printed. The vector `ddl-default-forms` is one of its subjects in
full, recorded.
"""
