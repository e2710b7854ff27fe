"""The reconciler: reads TiCDC's Canal-JSON from Kafka on Spark and applies it to a target.

`pipeline.py` is a round, top to bottom: probe, plan, read, reduce, order, apply, publish.
"""
