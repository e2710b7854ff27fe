"""A simulated upstream: a small database whose history becomes TiCDC's Canal-JSON messages.

`database` and `ddl` are the database: statements in, row changes per commit out, as TiKV would report them.
`oracle` knows what every table held after any commit. `changefeed` turns commits into messages, with all that
TiCDC may do on the way: split, shuffle, repeat, restart. `bank` is a workload with an invariant. `producer` is the
only module that touches the world: it sends messages to Kafka. Everything else is a function of its seed.
"""
