"""A round: probe, plan, read, judge, apply, DDL, publish. `round` is the list of these steps."""
