"""The config file: its keys, what their values may be, and how its text is read."""
