"""Reads the condition on stdin: the process in which one is read first that may take long (`trial`)."""

from consumer.filters.expressions import parsed
from consumer.runtime import trial

if __name__ == "__main__":
    trial.read_stdin(parsed)
