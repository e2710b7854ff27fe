"""Pictures of the page in many situations, to be looked at: `python -m tests.page.screenshots [NAME ...]`.

They are written into `docs/pictures/situations`, which the page `docs/development/page.md` shows.
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.page import acts, scenes
from tests.page.browser import Browser, Page
from tests.page.palette import with_palette
from tests.page.scenes import Scene, status
from tests.page.stage import Stage, staged
from tests.page.test_acting import fill, press

PLACE = Path(__file__).parent.parent.parent / "docs" / "pictures" / "situations"
DESKTOP, PHONE = (1280, 900), (360, 740)
READY = "document.querySelector('.plot path.line') !== null"


def nothing(_stage: Stage, _page: Page) -> None:
    """Leave it as it is."""


@dataclass(frozen=True)
class Shot:
    """One picture."""

    name: str
    scene: Callable[[], Scene]
    size: tuple[int, int] = DESKTOP
    look: dict[str, Any] = field(default_factory=dict)
    before: Callable[[Stage, Page], None] = nothing
    ready: str = READY


def fleet() -> Scene:
    """Four changefeeds, all well but for one that is paused."""
    return Scene.of(
        status("orders"),
        status("billing", target="mariadb://db-1.internal:3306", lag_now_seconds=0.8),
        status("audit-archive", target="sqlite:///srv/audit", state="stopped", lag_now_seconds=86_400.0 * 3),
        status("customers", state="pending", leads=False, lag_now_seconds=2.1),
    )


def trouble() -> Scene:
    """A failed, a stalled, and others that are well."""
    return Scene.of(
        scenes.failed(), scenes.stalled(), status("customers"), status("warehouse", target="tidb://10.2.0.8:4000")
    )


def hostile() -> Scene:
    """Names that want to be markup, turn around, or never end."""
    return Scene.of(scenes.hostile())


def gone(stage: Stage, page: Page) -> None:
    """Take the API away."""
    stage.stop()
    page.wait("document.body.dataset.standing === 'gone'")
    page.wait("parseInt(document.querySelector('.age')?.innerText.match(/\\d+/)?.[0] ?? 0) >= 4")


def slow(stage: Stage, page: Page) -> None:
    """Make it slow."""
    stage.delay_s = 6
    page.wait("document.body.dataset.standing === 'slow'")


def asked(_stage: Stage, page: Page) -> None:
    """Open the question before a pause."""
    page.click("#feed-command")


def decide(_stage: Stage, page: Page) -> None:
    """Open the question about a DDL that stops the changefeed."""
    page.click(".ddls button")


def ddl_failed() -> Scene:
    """One that a DDL stops."""
    statement = "ALTER TABLE `shop`.`orders` ADD FULLTEXT INDEX `words` (`note`)"
    reason = "PostgreSQL has no FULLTEXT index"
    return Scene.of(
        scenes.failed().model_copy(
            update={"ddl_history": [scenes.ddl(statement, "failed", reason=reason), *scenes.DDLS]}
        )
    )


def read(_stage: Stage, page: Page) -> None:
    """Read the charts by keys."""
    page.run("document.getElementById('plots').focus()")
    for _ in range(40):
        page.press("ArrowLeft")


def one_table(_stage: Stage, page: Page) -> None:
    """Open a table."""
    page.click(".tables tbody button")


def quarantine() -> Scene:
    """One with messages in quarantine."""
    return Scene.of(acts.quarantined())


def listed(stage: Stage, page: Page) -> None:
    """Wait for the quarantined messages."""
    acts.quarantine_of(stage)
    page.open(stage.url)
    page.wait("document.querySelectorAll('.messages tbody tr').length === 4")


def message(stage: Stage, page: Page) -> None:
    """Open one of them."""
    listed(stage, page)
    page.click(".messages tbody tr button")
    page.wait("document.querySelector('.content pre') !== null")


def difference(stage: Stage, page: Page) -> None:
    """Edit the settings, and see what changes."""
    acts.config_of(stage)
    page.click("#feed-settings")
    page.wait("document.getElementById('settings-text') !== null")
    fill(page, "settings-text", "# more\n")
    press(page, "Show what changes", "#sheet")
    page.wait("document.querySelector('.difference') !== null")


def form(_stage: Stage, page: Page) -> None:
    """Open the form of a new changefeed."""
    page.click("#new-changefeed")
    page.wait("document.getElementById('new-id') !== null")


def locked(stage: Stage, page: Page) -> None:
    """Ask for the token."""
    stage.token = "sesame"
    page.open(stage.url)
    page.wait("document.querySelector('form.sign-in') !== null")


SHOTS = [
    Shot("healthy", fleet),
    Shot("healthy-dark", fleet, look={"dark": True}),
    Shot("healthy-phone", fleet, PHONE),
    Shot("healthy-phone-dark", fleet, PHONE, {"dark": True}),
    Shot("trouble", trouble),
    Shot("trouble-dark", trouble, look={"dark": True}),
    Shot("trouble-phone", trouble, PHONE),
    Shot("stalled", lambda: Scene.of(scenes.stalled())),
    Shot("stalled-phone", lambda: Scene.of(scenes.stalled()), PHONE),
    Shot("many", lambda: Scene.of(scenes.many())),
    Shot("many-phone", lambda: Scene.of(scenes.many()), PHONE),
    Shot("gone", trouble, before=gone),
    Shot("gone-dark-phone", fleet, PHONE, {"dark": True}, before=gone),
    Shot("slow", fleet, before=slow),
    Shot("confirm", fleet, before=asked),
    Shot("decide", ddl_failed, before=decide),
    Shot("decide-phone-dark", ddl_failed, PHONE, {"dark": True}, before=decide),
    Shot("table", fleet, before=one_table),
    Shot("table-phone-dark", fleet, PHONE, {"dark": True}, before=one_table),
    Shot("quarantine", quarantine, before=listed),
    Shot("message", quarantine, before=message),
    Shot("message-phone-dark", quarantine, PHONE, {"dark": True}, before=message),
    Shot("difference", lambda: Scene.of(status()), before=difference),
    Shot("form-phone", lambda: Scene.of(status()), PHONE, before=form),
    Shot("sign-in", fleet, before=locked),
    Shot("unseen", lambda: Scene.of(scenes.unseen())),
    Shot("read", lambda: Scene.of(status()), before=read),
    Shot("hostile", hostile),
    Shot("hostile-phone", hostile, PHONE),
    Shot("empty", Scene, ready="document.querySelector('.verdict') !== null"),
]


def take(shot: Shot, browser: Browser, folder: Path) -> Path:
    """Take one picture."""
    with staged(shot.scene()) as stage, browser.page(*shot.size, **shot.look) as page:
        metrics = dict(zip(("width", "height"), shot.size, strict=True)) | {"mobile": shot.size == PHONE}
        page.call("Emulation.setDeviceMetricsOverride", deviceScaleFactor=1, **metrics)
        page.open(stage.url)
        page.wait(shot.ready)
        try:
            shot.before(stage, page)
            file = folder / f"{shot.name}.png"
            page.picture(file)
            file.write_bytes(with_palette(file.read_bytes()))
        finally:
            if stage.is_gone:
                stage.start()
    return file


def main(folder: Path, names: list[str]) -> None:
    """Take all of them, or some."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        for shot in SHOTS:
            if not names or shot.name in names:
                print(take(shot, browser, folder))


if __name__ == "__main__":
    main(PLACE, sys.argv[1:])
