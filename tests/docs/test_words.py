"""Texts use the field's words: none of ours for what Kafka's, Debezium's or PostgreSQL's documentation has one."""

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.docs.test_links import PAGES, name_of
from tests.docs.test_readme import ROOT

PLAIN = {
    r"set(s|ting)? aside": "quarantined",
    r"mend(s|ed|ing)?": "fixed, repaired",
    r"anew": "again",
    r"pretend(s|ed)?": "simulated",
}
"""Words that were ours, and the one to use."""
ONLY_IN_PAGES = {r"tells?|told": "reports, says", r"torn": "partial"}
"""What pages report; names in the code still hold these words."""
HISTORY = {"CHANGELOG.md", "docs/attacks.md"}
SOURCES = [
    path
    for package in ("consumer", "ordering", "sinks", "docker")
    for path in sorted((ROOT / package).rglob("*"))
    if path.suffix in {".py", ".js", ".html", ".yml", ".json"} and "vectors" not in path.parts
]


def odd_words(text: str, words: dict[str, str]) -> list[str]:
    return [found.group() for found in re.finditer(rf"\b({'|'.join(words)})\b", text, re.IGNORECASE)]


def texts(path: Path) -> Iterator[str]:
    """What people read: of a module its strings and comments, else all."""
    if path.suffix != ".py":
        yield path.read_text()
        return
    with path.open("rb") as lines:
        for token in tokenize.tokenize(lines.readline):
            if token.type in {tokenize.STRING, tokenize.COMMENT}:
                yield token.string


def test_odd_words_are_found() -> None:
    assert odd_words("rows are Set aside and made anew, amended", PLAIN) == ["Set aside", "anew"]


def test_pages_use_plain_words() -> None:
    found = {p: odd_words(p.read_text(), PLAIN if name_of(p) in HISTORY else PLAIN | ONLY_IN_PAGES) for p in PAGES}
    assert {name_of(path): words for path, words in found.items() if words} == {}


def test_code_and_messages_use_plain_words() -> None:
    found = {path: [word for text in texts(path) for word in odd_words(text, PLAIN)] for path in SOURCES}
    assert {name_of(path): words for path, words in found.items() if words} == {}
