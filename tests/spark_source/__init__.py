"""The Spark data source: its plans beside a model, its options, and queries on Kafka and Spark."""
