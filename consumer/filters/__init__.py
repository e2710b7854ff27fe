"""What of the input counts, in the spelling of a TiCDC changefeed: tables, kinds of events, values of rows.

`tables` matches names, `expressions` reads SQL conditions into trees (`condition_tree`), `mysql_values` computes them,
`events` holds the event filters, `consumer.config.changefeed_filter` is all of it together.
"""
