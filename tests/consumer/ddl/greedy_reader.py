"""A reader that wants more memory than a trial may have."""

from consumer.runtime import trial

if __name__ == "__main__":
    trial.read_stdin(lambda _: bytearray(trial.MOST_MEMORY + 1))
