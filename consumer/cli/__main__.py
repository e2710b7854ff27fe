"""Where `reconciler` and `python -m consumer.cli` begin: Ctrl-C while the program is loaded leaves no traceback."""

import signal
import sys

_UNTIL_STOPPED = frozenset({"run", "serve"})
"""Commands that end with 0 when a signal stops them, at whatever moment."""


def main() -> None:
    """Load the command line, and do what it says."""
    try:
        from consumer.cli.main import main as command  # noqa: PLC0415 what takes a moment
    except KeyboardInterrupt:
        sys.exit(0 if _UNTIL_STOPPED.intersection(sys.argv[1:]) else 128 + signal.SIGINT)
    command()


if __name__ == "__main__":
    main()
