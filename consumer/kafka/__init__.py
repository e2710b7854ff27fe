"""Kafka: its control plane (kafka-python), its data plane (confluent-kafka), and the properties that both follow."""
