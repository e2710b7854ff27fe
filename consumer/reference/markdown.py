"""Markdown, as far as pages of reference need it."""

from collections.abc import Iterable, Sequence


def made_by(source: str) -> str:
    """The note on top of a page that nobody should edit."""
    return f"<!-- Made by `python -m consumer.reference` from {source}: change that, not this. -->"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    lines = [tuple(heads), tuple("---" for _ in heads), *(tuple(map(cell, row)) for row in rows)]
    return [f"|{'|'.join(f' {text} ' if text else ' ' for text in line)}|" for line in lines]


def cell(text: str) -> str:
    """A text in a cell: one line, bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def joined(*parts: Iterable[str] | str) -> str:
    """Paragraphs and tables, with an empty line between two of them."""
    return "\n\n".join(part if isinstance(part, str) else "\n".join(part) for part in parts if part) + "\n"
