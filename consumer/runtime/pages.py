"""The pages of the documentation, which an installed package has too: hints name them as `reconciler help TOPIC`."""

from pathlib import Path

from ordering.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent.parent
_PLACES = (_PACKAGE / "pages", _PACKAGE.parent / "docs")
"""Where an installation has them (setup.py copies them), and where a checkout does."""


def page_names() -> dict[str, str]:
    """Each page's name, with its title."""
    pages = next((place for place in _PLACES if place.is_dir()), None)
    found = {} if pages is None else {path.stem: path for path in sorted(pages.glob("*.md")) if path.stem.islower()}
    return {name: _title(path.read_text(encoding="utf-8")) for name, path in found.items()}


def _title(text: str) -> str:
    """A page's heading; generated pages have a comment before it."""
    return next((line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")), "")


def page_text(name: str) -> str:
    """A page, in Markdown. Raises ConfigError for a name that no page has."""
    if name not in page_names():
        raise ConfigError(f"there is no page {name!r}", hint=f"pages: {', '.join(page_names())}")
    return next(path for place in _PLACES if (path := place / f"{name}.md").is_file()).read_text(encoding="utf-8")
