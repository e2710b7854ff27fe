"""The documentation as a site: built strictly, every page of the repository is in it, links lead to where pages are."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_readme import ROOT

PAGES = sorted(path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md"))
FROM_ROOT = {"about": "README", "changelog": "CHANGELOG", "contributing": "CONTRIBUTING", "security-policy": "SECURITY"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)]
    built = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return place


def test_every_page_is_in_it(site: Path) -> None:
    missing = [page for page in PAGES if page.name != "README.md" and not (site / page.with_suffix(".html")).exists()]
    assert missing == []
    assert (site / "index.html").exists()


@pytest.mark.parametrize(("here", "there"), FROM_ROOT.items())
def test_pages_of_the_root_are_in_it_and_linked(site: Path, here: str, there: str) -> None:
    title = (ROOT / f"{there}.md").read_text().splitlines()[0].removeprefix("# ")
    assert title in (site / f"{here}.html").read_text()
    assert f'href="{here}.html"' in (site / "index.html").read_text()


def test_no_link_leads_to_a_source_file(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert re.findall(r'href="(?!https?:)[^"]*\.md["#]', page.read_text()) == [], page
