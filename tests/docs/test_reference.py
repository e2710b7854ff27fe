"""The pages of reference are what the code says now, and complete: keys, commands, routes, exit codes."""

import re
import tomllib

import pytest
from click.testing import CliRunner

from consumer.config.model import Config, config_from
from consumer.config.table_sections import (
    ColumnMaskSection,
    ColumnSelectorSection,
    DispatcherSection,
    EventFilterSection,
)
from consumer.reference import PAGES
from consumer.reference.__main__ import main as write_pages
from consumer.reference.api_page import openapi
from consumer.reference.config_page import keys_of
from tests.consumer.cli.test_manners import ALL
from tests.docs.test_readme import LEAST, ROOT, keys


def told(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text()


def rows(name: str) -> dict[str, list[str]]:
    """First cell without backticks -> the others, of all tables of a page."""
    cells = [re.split(r" ?(?<!\\)\| ?", line.strip("|")) for line in told(name).splitlines() if line.startswith("| `")]
    return {first.strip(" `"): [cell.strip() for cell in rest] for first, *rest in cells}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    assert told(name) == PAGES[name](), "write it again: python -m consumer.reference"


def test_the_command_prints_a_page_and_writes_all(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.chdir(str(tmp_path))
    runner = CliRunner()
    assert runner.invoke(write_pages, ["configuration"]).output == told("configuration")
    assert runner.invoke(write_pages, []).exit_code == 1, "there is no docs/ here"


def test_every_key_has_a_meaning_and_a_default_that_is_one() -> None:
    found = rows("configuration")
    models = (EventFilterSection, DispatcherSection, ColumnSelectorSection, ColumnMaskSection)
    filters = {key for model in models for key, _ in keys_of(model)}
    assert set(found) == {key for key, _ in keys(Config)} | set(filters)
    for key, field in keys(Config):
        _, default, meaning = found[key]
        assert meaning, key
        if field.is_required():
            assert default == "required", key
            continue
        if key in ("source.bootstrap-servers", "source.topics"):  # required, unless there are files instead
            assert default in ('`""`', "`[]`"), key
            continue
        values = tomllib.loads(f"{LEAST}\n{key} = {default.strip('`')}")
        assert config_from(values, "") == config_from(tomllib.loads(LEAST), ""), key


def test_every_command_has_a_section_with_examples() -> None:
    """That the examples parse is tested where the help texts are, which they come from."""
    parts = re.split(r"^## reconciler (.+)\n", told("cli"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert {" ".join(path) for path, _ in ALL} == set(sections)
    assert [name for name, text in sections.items() if "```bash\n" not in text] == []


def test_every_route_and_every_type_of_the_api_is_told() -> None:
    text = told("api")
    document = openapi()
    for path, verbs in document["paths"].items():
        for verb in verbs:
            assert f"`{verb.upper()} {path}`" in text
    for name, schema in document["components"]["schemas"].items():
        if "NewChangefeed" not in name:
            assert f"### {name} (type)" in text
        assert all(f"| `{field}` |" in text for field in schema.get("properties", {})), name


def test_every_exit_code_is_told_with_the_words_of_its_errors() -> None:
    codes = re.findall(r"^\| (\d) \| .+ \|$", told("cli"), re.MULTILINE)
    assert codes == [str(code) for code in range(9)]
