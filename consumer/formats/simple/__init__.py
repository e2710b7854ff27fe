"""TiCDC's Simple protocol, in JSON and in Avro."""
