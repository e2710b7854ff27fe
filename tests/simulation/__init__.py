"""The whole pipeline in one process, against a simulated upstream, Kafka, Redis and target, with seeded mishaps.

`log`, `jobs`, `memory` and `backend` stand where Kafka, Spark, the target and Redis stand otherwise; what they hide is
time and the network. `plan` makes a world out of a seed, `world` lets it run, `checker` compares every commit with the
upstream. `python -m tests.simulation SEED` runs one seed again.
"""
