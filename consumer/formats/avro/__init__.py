"""TiCDC's Avro protocol with a schema registry, and the reader of Avro that the Simple protocol shares."""
