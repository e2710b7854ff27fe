"""`python -m tests.faults.counted_run CONFIG`: `reconciler run --once --json` that also counts what the driver reads.

The driver's own reader, which is for watermarks only, reports through librdkafka's statistics how many bytes came in
from the brokers, prefetched ones included. The last line is the run's JSON object with `driver_bytes` added.
"""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from consumer.config.model import load_config
from consumer.kafka.reader import RangeReader
from consumer.run.progress_log import Display
from consumer.run.runner import Runner
from consumer.runtime import logs
from consumer.source import probe

_EVERY_MS = 50


class CountedReader(RangeReader):
    """A reader that counts the bytes it received, over all of its kind."""

    received: dict[int, int] = {}  # noqa: RUF012 shared on purpose

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Ask for statistics."""
        super().__init__({**settings, "statistics.interval.ms": _EVERY_MS, "stats_cb": self._note})

    def _note(self, text: str) -> None:
        brokers = json.loads(text)["brokers"].values()
        self.received[id(self)] = sum(broker["rxbytes"] for broker in brokers)


def main() -> None:
    """Run and count."""
    started = time.monotonic()
    logs.set_up(json=False, verbose=False)
    probe.RangeReader = CountedReader  # type: ignore[misc]
    outcome = Runner(load_config(Path(sys.argv[1])), Display()).run(once=True, started=started)
    print(json.dumps(outcome.as_json() | {"driver_bytes": sum(CountedReader.received.values())}))


if __name__ == "__main__":
    main()
