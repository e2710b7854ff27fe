"""TiCDC's Debezium format, in JSON: messages with a Connect schema, brought into the form that tasks read."""
