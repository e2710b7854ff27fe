"""From which source a changefeed reads on: what retention has left, and how it goes over to another one."""
