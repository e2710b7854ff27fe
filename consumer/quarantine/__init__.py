"""Messages that are quarantined: collected, traced to a culprit, sent to a dead-letter topic, shown."""
