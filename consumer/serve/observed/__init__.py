"""What is known of a changefeed in this process's memory: its run, its target, its tables, its past."""
