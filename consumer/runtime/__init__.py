"""What every process needs: logs, signals, retries, locks, temporary files, secrets. Knows nothing of CDC."""
