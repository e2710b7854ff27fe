"""What DDL does to rows, compared with TiDB: random scripts of types, defaults, conversions, partitions and spellings.

    python -m tests.differential --recorder PROGRAM [--seed N] [--count N] [--keep DIR]
                                 [--targets mariadb,postgres,sqlite,tidb]
                                 [--consistencies snapshot,transaction,row]

PROGRAM as in `tests.histories`. A script that leaves a target with other cells than TiDB, or stops it, is made as small
as it gets while it still does, and printed. The
vector `ddl-default-forms` is one of its subjects in full, recorded, for runs without PROGRAM.
"""
