"""In every page: links and pictures lead somewhere, files and keys that are named exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.config.model import Config
from consumer.config.table_sections import DispatcherSection, EventFilterSection
from tests.docs.test_readme import ROOT, keys

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
KEYS = {key for key, _ in keys(Config)}
SECTIONS = {key.rpartition(".")[0] for key in KEYS} - {""}
FILTER_KEYS = {f"filter.event-filters.{field.alias}" for field in EventFilterSection.model_fields.values()}
FILTER_KEYS |= {f"sink.dispatchers.{field.alias}" for field in DispatcherSection.model_fields.values()}
SPARK_S_OWN = ("spark.driver.", "spark.local.", "spark.authenticate", "spark.network.")
PLACES = r"`((?:docs|docker|tests|consumer|ordering|sinks)/[\w./*-]+)`"


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(path: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """What GitHub makes of the headings."""
    heads = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def _exists(place: str) -> bool:
    """Of tests `docs/guarantees.md` leaves the folder out."""
    return any(list(root.glob(place.rstrip("/"))) for root in (ROOT, ROOT / "tests"))


def links(path: Path) -> Iterator[tuple[Path, str]]:
    """File and anchor of every link and picture of a page that leads into this repository."""
    for goal in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if not re.match(r"https?://", goal):
            file, _, anchor = goal.partition("#")
            yield (path.parent / file).resolve() if file else path, anchor


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    for file, anchor in links(path):
        assert file.exists(), file
        assert not anchor or anchor in anchors(file), (file, anchor)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_files_that_are_named_exist(path: Path) -> None:
    assert [place for place in re.findall(PLACES, prose(path)) if not _exists(place)] == []


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_keys_that_are_named_exist(path: Path) -> None:
    roots = "|".join(sorted({section.partition(".")[0] for section in SECTIONS}))
    named = set(re.findall(rf"`((?:{roots})\.[a-z][a-z.-]+)(?: = [^`]*)?`", prose(path)))
    ours = {key for key in named if not re.match(r"spark\.(?!master$)", key)}  # any setting of Spark's may stand there
    assert ours <= KEYS | SECTIONS | FILTER_KEYS


def test_every_page_is_on_the_map() -> None:
    mapped = {file for file, _ in links(ROOT / "docs" / "README.md")}
    assert {path for path in PAGES if path.parent == ROOT / "docs"} - {ROOT / "docs" / "README.md"} <= mapped
    assert ROOT / "docs" / "README.md" in {file for file, _ in links(ROOT / "README.md")}
