"""`docs/runbook.md` knows every alert, every exit code, every kind of error; its commands exist."""

import re

import pytest

from consumer.serve.api.errors import RequestError, code_of
from ordering.errors import ReconcilerError
from sinks.rows import bisect_refused
from tests.docs.test_readme import README, ROOT, check_command_line, words_of
from tests.ops.test_alerts import ALERTS

TEXT = (ROOT / "docs" / "runbook.md").read_text()
NAMES = {rule["alert"]: rule["labels"]["severity"] for rule in ALERTS}


def sections() -> dict[str, str]:
    parts = re.split(r"^### (\w+)\n", TEXT, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(heading: str) -> dict[str, list[str]]:
    section = re.split(rf"^## {heading}\n", TEXT, flags=re.MULTILINE)[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return {first.strip("`"): rest for first, *rest in cells}


def kinds(kind: type[ReconcilerError] = ReconcilerError) -> set[type[ReconcilerError]]:
    below = {found for one in kind.__subclasses__() for found in kinds(one)}
    return below | ({kind} if kind is not ReconcilerError else set())


def test_each_alert_has_a_section_that_says_what_to_do() -> None:
    assert set(sections()) == set(NAMES)
    for name, text in sections().items():
        assert re.search(r"^- ", text, re.MULTILINE), name


def test_each_alert_is_listed_by_its_severity() -> None:
    for severity in ("page", "ticket"):
        line = re.search(rf"^\| {severity} \| (.+) \|$", TEXT, re.MULTILINE)
        assert line
        assert set(re.findall(r"`(\w+)`", line[1])) == {name for name, found in NAMES.items() if found == severity}


def test_each_kind_of_error_is_told_with_its_exit_code() -> None:
    assert bisect_refused.RowRefusedError in kinds()
    errors = {one for one in kinds() if not issubclass(one, RequestError) and not one.__module__.startswith("tests.")}
    ours = {one for one in errors if one.__module__.split(".")[1] != "embedded"}
    expected = {code_of(one.__new__(one)).removeprefix("Reconciler:Err"): one.exit_code for one in ours}
    told = {code: int(cells[0]) for code, cells in rows("Errors").items() if cells[0].isdigit()}
    assert told == {**expected, "Internal": 1}


def test_each_exit_code_is_told() -> None:
    told = {code for code in rows("Exit codes") if code.isdigit()}
    assert {str(one.exit_code) for one in kinds()} | {"0", "6"} == told


@pytest.mark.parametrize("text", sorted(set(re.findall(r"`(reconciler\s[^`]+)`", TEXT))))
def test_its_commands_exist(text: str) -> None:
    check_command_line(words_of(text))


def test_it_is_found_and_its_links_lead_somewhere() -> None:
    assert "docs/runbook.md" in README
    for path in set(re.findall(r"`((?:docs|docker)/[\w./-]+)`", TEXT)):
        assert (ROOT / path).exists(), path
