"""The pages that `reconciler help` lists."""

import re
from pathlib import Path

from click.testing import CliRunner

from consumer.cli.main import main
from consumer.runtime.pages import page_names, page_text

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_every_page_is_listed_with_its_heading() -> None:
    """Those that a program makes too: they begin with a comment."""
    titles = page_names()
    assert set(titles) == {path.stem for path in DOCS.glob("*.md")} - {"README"}
    for name, title in titles.items():
        headings = re.findall(r"(?m)^# (.+)$", page_text(name))
        assert title, name
        assert title == headings[0], name
    assert any(page_text(name).startswith("<!--") for name in titles)
    assert len(set(titles.values())) == len(titles)


def test_help_shows_no_comment() -> None:
    listed = CliRunner().invoke(main, ["help"]).output
    assert "  configuration" in listed
    assert "<!--" not in listed
