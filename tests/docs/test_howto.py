"""The how-to pages tell the truth: samples parse and mean what is said, types and formats are the code's."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from consumer.config import changefeed_filter
from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Consistency, config_from
from consumer.operate import progress as recovery
from consumer.verify import resume_file
from ordering import progress
from sinks.ddl.parse.columns import read_type
from sinks.ddl.parse.words import Words
from sinks.postgres.preflight import OLDEST
from sinks.postgres.types import type_of
from sinks.uri import parse_target_uri
from tests.docs.test_readme import ROOT, check_command_line, words_of

PAGES = (
    "concepts", "configuration", "changefeed", "targets", "comparison", "upgrade", "README",
    "filters", "keyless-tables", "large-rows", "limits", "output", "troubleshooting", "storage",
)  # fmt: skip
TEXTS = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in PAGES}
LEAST = {"changefeed": "x", "source": {"bootstrap-servers": "x", "topics": ["x"]}, "target": {"uri": "sqlite:////x"}}


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXTS[name], re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", PAGES)
def test_their_commands_exist(name: str) -> None:
    lines = [line.split(" > ")[0] for block in blocks(name, "bash") for line in block.splitlines()]
    for text in [*lines, *re.findall(r"`(reconciler\s[^`]+)`", TEXTS[name])]:
        words = words_of(text.replace("[OPTIONS]", ""))
        one = {"verify": ["CONFIG"], "check": ["CONFIG"], "serve": ["DIR"]}.get(" ".join(words), [])
        check_command_line(words + one)


def test_the_changefeed_that_works_is_one() -> None:
    samples = (tomllib.loads(block) for block in blocks("changefeed", "toml"))
    feed, simple, opened, debezium, avro, outside, ours = samples
    (uri,) = re.findall(r'--sink-uri="(.+)"', TEXTS["changefeed"])
    assert {"protocol=canal-json", "enable-tidb-extension=true"} <= set(uri.partition("?")[2].split("&"))
    assert ours["filter"]["rules"] == feed["filter"]["rules"]
    section = config_from({**LEAST, **ours}, "docs/changefeed.md").filter
    assert len(read_filter(section).events.filters) == 1
    assert simple["source"]["protocol"] == simple["sink"]["protocol"] == "simple"
    assert opened["source"]["protocol"] == opened["sink"]["protocol"] == "open-protocol"
    for source in (simple["source"], opened["source"]):
        config_from({**LEAST, "source": {**LEAST["source"], **source}}, "")  # type: ignore[dict-item]
    for source in (debezium["source"], avro["source"], outside["source"]):
        config_from({**LEAST, "source": {**LEAST["source"], **source}}, "")  # type: ignore[dict-item]
    places = [feed["sink"]["kafka-config"]["large-message-handle"]["claim-check-storage-uri"]]
    config_from({**LEAST, "source": {**LEAST["source"], "claim-check": {"locations": places}}}, "")  # type: ignore[dict-item]


def test_files_are_read_as_the_page_says() -> None:
    sample, archived = (tomllib.loads(block) for block in blocks("storage", "toml"))
    source = config_from({**LEAST, "source": sample["source"]}, "docs/storage.md").source
    assert source.protocol == sample["sink"]["protocol"] == "csv"
    assert sample["sink"]["csv"]["include-commit-ts"]
    kafka = config_from({**LEAST, "source": archived["source"]}, "docs/storage.md").source
    assert kafka.archive_protocol == "csv"


LINES = [*TEXTS["changefeed"].splitlines(), *TEXTS["storage"].splitlines()]
ROWS = [line for line in LINES if line.startswith("| `") and line.count("|") == 5]
NAMED = sorted({test for row in ROWS for test in re.findall(r"`([^`]+)`", row.strip("|").split("|")[-1])})


def test_what_is_said_of_settings_has_tests() -> None:
    untested = [row for row in ROWS if not row.strip("|").split("|")[-1].strip()]
    assert len(ROWS) > 20
    assert [row.split("`")[1] for row in untested] == ["enable-sync-point"]


@pytest.mark.parametrize("named", NAMED)
def test_named_tests_are_there(named: str) -> None:
    path, _, function = named.partition("::")
    place: Path = ROOT / "tests" / path
    if place.is_dir():
        assert list(place.glob("test_*.py"))
        return
    found = {node.name for node in ast.walk(ast.parse(place.read_text())) if isinstance(node, ast.FunctionDef)}
    assert not function or function in found


def test_the_targets_are_some() -> None:
    samples = [tomllib.loads(block)["target"] for block in blocks("targets", "toml")]
    for sample in samples:
        parse_target_uri(config_from({**LEAST, "target": sample}, "docs/targets.md").target.uri)
    assert [sample["uri"].partition(":")[0] for sample in samples] == ["mariadb", "tidb", "postgresql", "sqlite"]
    told = re.findall(r"^\| `(\w+)` \((?:default)", TEXTS["concepts"], re.MULTILINE)
    assert set(told) == {"snapshot", "row"}
    assert all(f"| `{name}`" in TEXTS["concepts"] for name in Consistency.__args__)  # type: ignore[attr-defined]


def test_types_in_postgresql_are_the_code_s() -> None:
    table = TEXTS["targets"].split("| upstream | becomes |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| (`.+?) \| (`.+?) \| .*\|$", table, re.MULTILINE)
    pairs = [pair for row in rows for pair in zip(*(re.findall(r"`([^`]+)`", cell) for cell in row), strict=True)]
    assert len(pairs) > 25
    for kind, becomes in pairs:
        assert type_of(read_type(Words(kind))) == becomes, kind
    assert f"Version {OLDEST // 10000} or later" in TEXTS["targets"]


def test_the_formats_are_the_code_s() -> None:
    text = TEXTS["upgrade"]
    assert f"`format` in its `state`, now {progress.FORMAT} |" in text
    assert f"`format`, now {recovery.FORMAT} |" in text
    assert f"`{changefeed_filter._VERSION}:` in front" in text
    assert f"`version`, now {resume_file._VERSION} |" in text


def test_the_versions_that_are_tested_are_those_that_are_brought_along() -> None:
    jars = "".join(path.read_text() for path in ROOT.glob("*/embedded/*-jars.properties"))
    for mark, part in (("kafka_2.13:", "Kafka's broker"), ("linux64/", "MariaDB"), ("linux-amd64/", "PostgreSQL")):
        version = re.search(rf"{re.escape(mark)}(\d+\.\d+(?:\.[1-9]\d*)?)", jars)
        assert version
        assert version[1] in next(line for line in TEXTS["upgrade"].splitlines() if line.startswith(f"| {part} |"))
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert f"{python.removeprefix('>=')} and later" in TEXTS["upgrade"]


def test_each_picture_is_of_a_known_kind() -> None:
    kinds = [block.split()[0] for block in blocks("concepts", "mermaid")]
    assert len(kinds) == 6
    assert set(kinds) <= {"flowchart", "sequenceDiagram", "stateDiagram-v2"}
