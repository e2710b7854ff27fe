"""A query that writes changes as Parquet until all that the topic holds is written: killed and started again by tests.

python -m tests.spark_source.stream_to_parquet BOOTSTRAP TOPIC DIRECTORY [MAX_ROWS]
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from consumer.config.model import SparkSection
from consumer.spark.context import start_spark
from consumer.spark_source.source import TicdcDataSource


def main(bootstrap: str, topic: str, directory: str, max_rows: str = "1500") -> None:
    """Run the query to its end."""
    spark = SparkSession(start_spark("stream", SparkSection(master="local[2]")))
    spark.dataSource.register(TicdcDataSource)
    changes = (
        spark.readStream.format("ticdc")
        .option("source.bootstrap-servers", bootstrap)
        .option("source.topics", topic)
        .option("maxRowsPerTrigger", max_rows)
        .option("handle-keys", "bank.acc2(no)")
        .load()
    )
    place = Path(directory)
    writing = changes.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    print("begun", flush=True)
    writing.trigger(availableNow=True).start(str(place / "changes")).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
