"""What of the input counts, in the spelling of a TiCDC changefeed: tables, kinds of events, values of rows.

`tables` matches names, `expressions` reads SQL conditions and `values` computes them, `events` holds the event filters,
`changefeed` is all of it together and knows when a change of it would leave rows out.
"""
