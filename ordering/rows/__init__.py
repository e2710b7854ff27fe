"""Rows: which row an event is about, its halves, copies, net effect, transactions."""
