"""What mkdocs needs besides the pages: those of the repository's root, and links between both kinds.

mkdocs calls these functions by their names: https://www.mkdocs.org/user-guide/configuration/#hooks
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parent.parent
_FROM_ROOT = {
    "README.md": "about.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
}
"""A page of the repository's root -> its name in the site."""
_LINK = re.compile(r"\]\(([^)\s#]+\.(?:md|png|svg))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root."""
    for name, here in _FROM_ROOT.items():
        files.append(File.generated(config, here, content=(_ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links out of `docs/` and into it to where the pages are in the site."""
    del config, files
    inside = page.file.src_uri not in _FROM_ROOT.values()

    def turned(found: re.Match[str]) -> str:
        goal = found[1]
        if inside:
            outside = goal.removeprefix("../")
            return f"]({_FROM_ROOT[outside]}" if goal.startswith("../") and outside in _FROM_ROOT else found[0]
        return f"]({_FROM_ROOT.get(goal, goal.removeprefix('docs/'))}"

    return _LINK.sub(turned, markdown)
