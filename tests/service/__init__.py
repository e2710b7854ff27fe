"""The consumer against real servers: golden messages, interleavings, Redis, topics, bad input, the command line."""
