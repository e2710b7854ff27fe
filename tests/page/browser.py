"""A headless Chromium, told what to do over its own pipe (DevTools protocol): pages of their own, keys, pictures."""

import base64
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.page.fetching import Fetched, fetched

_ANSWER_S = 60.0
_WAIT_S = 120.0
_SWITCHES = (
    "--headless=shell",
    "--no-sandbox",  # root has none, and the pages are our own
    "--no-zygote",
    "--remote-debugging-pipe",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--disable-background-networking",
)
_START = (  # the pipe's ends become 3 and 4, as Chromium wants them
    "import fcntl,os,sys; a,b=(fcntl.fcntl(int(n),fcntl.F_DUPFD,10) for n in sys.argv[1:3]);"
    "os.dup2(a,3); os.dup2(b,4);"
    "os.execv(sys.argv[3],sys.argv[3:])"
)
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}


class BrowserError(Exception):
    """The browser refused a command, or a script failed."""


class Browser:
    """One process for many pages."""

    def __init__(self, folder: Path) -> None:
        self.tools: Fetched = fetched()
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        command = [str(self.tools.program), *_SWITCHES, f"--user-data-dir={folder}"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(to_read), str(to_write), *command],
            pass_fds=(to_read, to_write),
            env={**os.environ, **self.tools.environment, "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._number, self._buffer = 0, b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        os.close(self._in)  # it ends when nobody speaks to it any more
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)

    def call(self, method: str, session: str | None = None, **values: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": values}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + _ANSWER_S
        while True:
            answer = self._next(deadline, method)
            if answer.get("id") != self._number:
                self.events.append(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error']}")
            else:
                return dict(answer["result"])

    def _next(self, deadline: float, method: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._in, 1 << 20) if ready else b""
            if not data:
                raise BrowserError(f"{method}: no answer; the browser's exit code is {self._process.poll()}")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))

    @contextmanager
    def page(self, width: int = 1280, height: int = 900, **look: Any) -> Iterator["Page"]:
        """A page with a storage of its own; `look` as in `Page.look`."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        try:
            for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
                page.call(f"{domain}.enable")
            page.size(width, height)
            page.look(**look)
            yield page
        finally:
            self.call("Target.disposeBrowserContext", browserContextId=context)


@dataclass(slots=True)
class Page:
    """One tab."""

    browser: Browser
    session: str

    def call(self, method: str, **values: Any) -> dict[str, Any]:
        """A command of this page."""
        return self.browser.call(method, self.session, **values)

    def size(self, width: int, height: int) -> None:
        """The window's size in CSS pixels; narrow ones are phones."""
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2, mobile=phone)
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)

    def look(self, *, dark: bool = False, reduced: bool = False) -> None:
        """The media features that pages ask for."""
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced else "no-preference"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, url: str) -> None:
        """Go there. The page may still be loading afterwards: `wait`."""
        found = self.call("Page.navigate", url=url)
        if "errorText" in found:
            raise BrowserError(f"{url}: {found['errorText']}")

    def run(self, script: str) -> Any:
        """The value of an expression; of a promise, what it resolves to."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise BrowserError(f"{script[:200]}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, script: str, seconds: float = _WAIT_S) -> Any:
        """Wait until an expression is true; its value."""
        deadline = time.monotonic() + seconds
        while not (value := self.run(script)):
            if time.monotonic() > deadline:
                raise BrowserError(f"never true: {script}; the page says: {self.text()[:1500]}")
            time.sleep(0.02)
        return value

    def text(self, selector: str = "body") -> str:
        """What is to be read there."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def press(self, key: str) -> None:
        """Press a key."""
        code = _KEYS[key]
        more = {"text": "\r"} if key == "Enter" else {}
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click in the middle of an element, as a mouse does; what covers it gets the click.

        It waits until the element rests for two frames: who uses a mouse aims at what is seen.
        """
        place = self.run(
            f"""(async () => {{
                const frame = () => new Promise(requestAnimationFrame);
                const middle = () => {{
                    const e = document.querySelector({json.dumps(selector)});
                    e.scrollIntoView({{block: "center"}});
                    const r = e.getBoundingClientRect();
                    return [r.x + r.width / 2, r.y + r.height / 2];
                }};
                let last = middle();
                for (let still = 0; still < 2; ) {{
                    await frame();
                    const now = middle();
                    still = now[0] === last[0] && now[1] === last[1] ? still + 1 : 0;
                    last = now;
                }}
                return last;
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def picture(self, file: Path, *, whole: bool = True) -> None:
        """A PNG of the page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """Exceptions, and what the console and the security policy complained about, in this page."""
        self.run("0")
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(event["params"]["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(str(event["params"]["entry"]["text"]))
            elif event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] == "error":
                found.append(str(event["params"]["args"]))
        return found
