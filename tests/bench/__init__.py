"""The benchmark: a sysbench-like load, `reconciler run --once` on it, one comparable line (`python -m tests.bench`)."""
