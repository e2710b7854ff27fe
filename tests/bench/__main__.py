"""`python -m tests.bench`: servers, load, run, check, one line. Exit code 1 if the table is wrong."""

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from consumer.embedded import KafkaBroker, MariaDbServer
from tests.bench.load import Load
from tests.bench.measure import Result, Sending, measured_run, mysql_connection, write_config


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--ids", type=int, default=0, help="rows of the table; a tenth of the events")
    parser.add_argument("--target", choices=["mysql", "sqlite"], default="mysql")
    parser.add_argument("--kafka", default="", help="HOST:PORT of a broker; one is started otherwise")
    parser.add_argument("--mysql", default="", help="mysql://USER:PASSWORD@HOST:PORT; a MariaDB is started otherwise")
    parser.add_argument("--runs", type=int, default=1, help="runs on the same load, each into an empty target")
    parser.add_argument("--name", default="ticdc-reconciler")
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Measure, and print a line a run."""
    told = _arguments(words)
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-bench-")))
        bootstrap = told.kafka or stack.enter_context(KafkaBroker(place / "kafka")).bootstrap
        uri = f"sqlite:///{place}/sqlite"
        if told.target == "mysql":
            server = None if told.mysql else stack.enter_context(MariaDbServer(place / "mariadb", flush_at_commit=2))
            uri = told.mysql if server is None else server.uri
        load = Load(told.events, ids=told.ids, database=f"bench_{uuid4().hex[:8]}")
        bench = _Bench(told.name, place, load, bootstrap, _sent(load, bootstrap), uri)
        results = [bench.run() for _ in range(told.runs)]
    for result in results:
        print(json.dumps(asdict(result)) if told.json else result.line())
    return 0 if all(result.correct for result in results) else 1


def _sent(load: Load, bootstrap: str) -> str:
    topic, begun = f"bench-{uuid4().hex[:8]}", time.monotonic()
    size = Sending(bootstrap, topic, load.partitions).send(load.messages())
    seconds = time.monotonic() - begun
    print(f"{load.events} events, {size >> 20} MB sent to topic {topic} in {seconds:.1f} s", file=sys.stderr)
    return topic


@dataclass(frozen=True)
class _Bench:
    """What all runs share."""

    name: str
    place: Path
    load: Load
    bootstrap: str
    topic: str
    uri: str

    def run(self) -> Result:
        """Run into an empty target, and leave nothing of it in a server that may be somebody's."""
        changefeed = f"bench-{uuid4().hex[:8]}"
        uri = f"{self.uri}/{changefeed}" if self.uri.startswith("sqlite") else self.uri
        config = write_config(
            self.place / f"{changefeed}.toml",
            changefeed=changefeed,
            bootstrap=self.bootstrap,
            topic=self.topic,
            uri=uri,
        )
        try:
            return measured_run(self.name, config, self.load, uri)
        finally:
            if not uri.startswith("sqlite"):
                self._clear(changefeed)

    def _clear(self, changefeed: str) -> None:
        with mysql_connection(self.uri) as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS `{self.load.database}`")
            for table in ("checkpoint", "ddl", "writer"):
                cursor.execute(f"DELETE FROM ticdc_reconciler.{table} WHERE changefeed = %s", (changefeed,))


if __name__ == "__main__":
    sys.exit(main())
