"""TiCDC's topics as a Spark data source: `spark.readStream.format("ticdc")` and `spark.read.format("ticdc")`."""
