"""Random histories of DDL and rows: written as SQL, recorded by a real TiDB and TiCDC's encoder, played into targets.

    python -m tests.histories --recorder PROGRAM [--first SEED] [--count N] [--statements N]
                              [--targets sqlite,mariadb,postgres,tidb] [--keep DIR] [--keys | --crossing]

PROGRAM runs a script in TiDB and writes TiCDC's messages: `PROGRAM -script S -out JSONL -dump JSON -sink-uri URI`.
Without one the recorded histories of `tests/vectors` are what there is; the tests play those.
"""
