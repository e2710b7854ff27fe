"""Upstream DDL: which statement it is and which tables it names. Dialects translate or execute it themselves."""
