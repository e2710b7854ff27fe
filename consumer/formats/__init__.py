"""Message formats (`source.protocol`): each brings its messages into the form that tasks read, Canal-JSON."""
