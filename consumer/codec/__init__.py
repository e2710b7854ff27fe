"""The bytes of messages: Canal-JSON, compression, row images, watermarks. Pure."""
