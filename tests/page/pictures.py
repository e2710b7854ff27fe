"""`python -m tests.page.pictures`: the pictures of README and docs, made from real runs, into `docs/pictures`.

The page: a real Kafka, a simulated TiDB with TiCDC, `reconciler serve`, a message that is no JSON. The terminal: the
end of `reconciler demo`.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from consumer.demo.live_upstream import TOPIC, LiveUpstream
from consumer.embedded import KafkaBroker
from tests.page.browser import Browser, Page
from tests.page.palette import with_palette
from tests.page.test_acting import fill, press
from tests.page.test_page_live import sign_in
from tests.serving.lab import Serving

PLACE = Path(__file__).parent.parent.parent / "docs" / "pictures"
_RUNS_S = 100
"""So long the changefeed runs before its picture is taken: charts need something to show."""
_COLUMNS = 108
_NEITHER = re.compile(r"^ *\d+\.\d s \||^took ")
"""Lines about the progress in between, and about the speed of this machine."""
_FONTS = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"


def main(names: list[str]) -> None:
    """Make all, or only those of `terminal` or `page`."""
    PLACE.mkdir(exist_ok=True)
    if not names or "terminal" in names:
        (PLACE / "demo.svg").write_text(terminal(demo()))
    if not names or "page" in names:
        pages()


def pages() -> None:
    """Pictures of the page, from a changefeed that runs."""
    with (
        tempfile.TemporaryDirectory() as name,
        serving(Path(name)) as found,
        Browser(Path(name) / "profile") as browser,
    ):
        take(browser, found)


def demo() -> str:
    """What the demo prints from the kill on, in colour."""
    environment = {**os.environ, "FORCE_COLOR": "1"}
    command = [sys.executable, "-m", "consumer.cli", "demo"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=900)
    lines = [line for line in done.stdout.splitlines() if not _NEITHER.match(line)]
    first = next(i for i, line in enumerate(lines) if line.startswith("kill -9"))
    return "\n".join(lines[first:])


def terminal(text: str) -> str:
    """A terminal as SVG that loads nothing from elsewhere."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(text))
    svg = console.export_svg(title="./dev demo", theme=DIMMED_MONOKAI, unique_id="demo")
    svg = svg.replace("Fira Code, monospace", _FONTS)
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


@contextmanager
def serving(place: Path) -> Iterator[Serving]:
    """A changefeed that has worked for a while, with a message in quarantine."""
    folder = place / "changefeeds"
    folder.mkdir()
    (folder / "_serve.toml").write_text('[spark]\nmaster = "local[2]"\n')
    with KafkaBroker(place / "kafka") as broker:
        upstream = LiveUpstream(broker.bootstrap, seed=1, dispatcher="index-value", raw=False, pace=60)
        config = {
            "changefeed": "bank",
            "source": {"bootstrap-servers": broker.bootstrap, "topics": [TOPIC]},
            "target": {"uri": f"sqlite:///{place}/target"},
            "redis": {"uri": ""},
            "quarantine": {"enabled": True},
        }
        with Serving(folder) as found:
            upstream.start()
            try:
                time.sleep(5)  # the topic is made by the first message
                found.ask("POST", "", 201, json=config)
                found.until("bank", "work", lambda s: s["events"] > 0)
                producer = Producer({"bootstrap.servers": broker.bootstrap})
                producer.produce(TOPIC, b'{"id":0,"database":"bank","table":"acc0","type":"INS', partition=1)
                producer.flush(20)
                time.sleep(_RUNS_S)
                yield found
            finally:
                upstream.close()


def take(browser: Browser, found: Serving) -> None:
    """All pictures of the page."""
    with browser.page(1120, 1180) as page:
        sign_in(page, found)
        page.click(".ranges button:nth-child(1)")
        page.wait("document.querySelectorAll('.messages tbody tr').length === 1")
        page.run("document.activeElement.blur(); window.scrollTo(0, 0)")
        shot(page, "page")
        page.look(dark=True)
        shot(page, "page-dark")
        page.look()
        page.size(1120, 760)
        page.click(".messages tbody tr button")
        page.wait("document.querySelector('.content pre') !== null")
        shot(page, "quarantine")
        page.press("Escape")
        page.click("#new-changefeed")
        broker = found.ask("GET", "/bank/config")["config"]["source"]["bootstrap-servers"]
        values = {"id": "audit", "servers": broker, "topics": TOPIC, "address": "127.0.0.1:1"}
        values |= {"database": "audit", "user": "audit"}
        for name, text in values.items():
            fill(page, f"new-{name}", text)
        press(page, "Check", "#sheet")
        page.wait("document.querySelector('.findings') !== null", 60)
        page.size(1120, 1160)
        shot(page, "new-changefeed")
        page.press("Escape")
        page.size(390, 844)
        page.run("window.scrollTo(0, 0)")
        shot(page, "page-phone")


def shot(page: Page, name: str) -> None:
    """One picture, of what is to be seen without scrolling."""
    width, height = page.run("[innerWidth, innerHeight]")
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1.5, "mobile": width < 600}
    page.call("Emulation.setDeviceMetricsOverride", **metrics)
    file = PLACE / f"{name}.png"
    page.picture(file, whole=False)
    file.write_bytes(with_palette(file.read_bytes()))
    print(file, file.stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
