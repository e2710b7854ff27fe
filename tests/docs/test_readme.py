"""README and first steps tell the truth: commands exist and run, samples are the defaults, tables are complete."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from pydantic import BaseModel

from consumer.cli.main import main
from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config, config_from
from consumer.config.table_sections import EventFilterSection
from consumer.run.runner import RunOutcome
from ordering.errors import ReconcilerError

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text()


START = page("getting-started")
MOVED = "".join(
    page(name) for name in ("filters", "keyless-tables", "large-rows", "limits", "output", "troubleshooting")
)
"""What the README once held: it is checked as the README is."""


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def table(heading: str, text: str) -> dict[str, list[str]]:
    """The first table below a heading: first cell without backticks -> the other cells."""
    section = re.split(rf"^#+ {re.escape(heading)}\n", text, flags=re.MULTILINE)[1]
    rows = [line for line in re.split(r"^#", section, flags=re.MULTILINE)[0].splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]
    return {name.strip("` "): rest for first, *rest in cells for name in first.split("`, `")}


EVERYWHERE = README + "".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
LINES = [line for block in blocks("bash") for line in block.splitlines() if line and not line.startswith("#")]
FIRST_STEPS = [line for block in blocks("bash", START) for line in block.splitlines()]
INLINE = re.findall(r"`(reconciler\s[^`]+)`", README + START + MOVED)


def commands(group: click.Group = main, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def check_command_line(words: list[str]) -> None:
    """Fail for a command or an option that does not exist, and for wrong arguments."""
    command: click.Command = main
    arguments, waiting = 0, iter(words)
    for word in waiting:
        if word.startswith("--"):
            option = next(p for p in command.params if word in (*p.opts, *p.secondary_opts, "--help"))
            if isinstance(option, click.Option) and not option.is_flag and word != "--help":
                next(waiting)
        elif isinstance(command, click.Group):
            command = command.commands[word]
        else:
            arguments += 1
    assert not isinstance(command, click.Group)
    assert arguments == len([p for p in command.params if isinstance(p, click.Argument)])


def test_it_begins_with_two_commands() -> None:
    assert blocks("bash")[0].splitlines()[2:] == ["./dev demo", "./dev test"]
    assert README.index("```bash") < 800


def test_it_is_read_in_minutes() -> None:
    assert len(README.encode()) <= 8192
    assert [len(block.splitlines()) for block in blocks("bash")] == [4, 3, 5]


@pytest.mark.parametrize("line", sorted({*LINES, *FIRST_STEPS}))
def test_commands_in_blocks_exist(line: str) -> None:
    program, *words = shlex.split(line)
    match program:
        case "reconciler":
            check_command_line(words)
        case "./dev":
            assert re.search(rf"^  {words[0]}\) ", (ROOT / "dev").read_text(), re.MULTILINE)
        case "venv/bin/pip":
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            assert words[:1] == ["install"]
            assert all(re.fullmatch(r"\.\[(\w+)\]", word)[1] in extras for word in words[1:])  # type: ignore[index]
        case "export":
            assert words == ["PATH=$PWD/venv/bin:$PATH"], "where `reconciler` is then"
        case "git" | "cd":
            assert words[-1] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]
        case _:
            assert line == "python3 -m venv venv"


@pytest.mark.parametrize("text", INLINE)
def test_commands_in_the_text_exist(text: str) -> None:
    check_command_line(words_of(text))


def words_of(text: str) -> list[str]:
    """The words after `reconciler`; a command that is only mentioned gets its arguments."""
    words = shlex.split(text)[1:]
    mentioned = {
        "load": ["CONFIG", "--dump", "DIR"],
        "serve": ["DIRECTORY"],
        "status": ["CONFIG"],
        "topic retire": ["CONFIG", "NAME"],
        "verify": ["CONFIG"],
    }
    return words + mentioned.get(" ".join(words), [])


def test_every_command_is_documented() -> None:
    told = set(re.findall(r"^\| \[`(.+?)`\]\(#.+\) \| \S", page("cli"), re.MULTILINE))
    assert told == {name for name, _ in commands()}
    for name, command in commands():
        for option in (p for p in command.params if isinstance(p, click.Option)):
            assert any(f"`{opt}" in EVERYWHERE or f" {opt}" in EVERYWHERE for opt in option.opts), (
                f"{name} {option.opts}"
            )


def test_the_sample_is_the_defaults() -> None:
    (sample,) = blocks("toml", START)
    values = tomllib.loads(sample)
    config = config_from(values, "docs/getting-started.md")
    required: dict[str, Any] = {
        "changefeed": values["changefeed"],
        "source": {name: values["source"][name] for name in ("bootstrap-servers", "topics")},
        "target": {"uri": values["target"]["uri"]},
    }
    assert config == config_from(required, "required keys")
    (shortest,) = blocks("toml")
    assert tomllib.loads(shortest) == required, "the README shows the required keys, as the first steps do"


def test_every_required_key_is_in_the_shortest_sample() -> None:
    (shortest,) = blocks("toml")
    shown = {key for key, _ in keys(Config) if _has(tomllib.loads(shortest), key.split("."))}
    of_topics = {"source.bootstrap-servers", "source.topics"}  # of files, source.storage
    assert shown == {key for key, field in keys(Config) if field.is_required()} | of_topics
    for key in of_topics:
        values = tomllib.loads(shortest)
        del values["source"][key.partition(".")[2]]
        with pytest.raises(ReconcilerError, match="is missing"):
            config_from(values, "the shortest sample")


def _has(values: dict[str, Any], path: list[str]) -> bool:
    return path[0] in values and (len(path) == 1 or _has(values[path[0]], path[1:]))


def test_the_example_of_a_filter_is_one() -> None:
    examples = blocks("toml", page("filters"))
    required = {
        "changefeed": "x",
        "source": {"bootstrap-servers": "x", "topics": ["x"]},
        "target": {"uri": "sqlite:///x"},
    }
    first, *_ = [config_from({**required, **tomllib.loads(one)}, "docs/filters.md").filter for one in examples]
    assert len(read_filter(first).events.filters) == 1
    told = table("Event filters", page("filters"))
    assert set(told) == {field.alias for field in EventFilterSection.model_fields.values()}


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted key and field of every key of the config."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from keys(field.annotation, f"{key}.")
        else:
            yield key, field


LEAST = """changefeed = "x"
source.bootstrap-servers = "x"
source.topics = ["x"]
target.uri = "sqlite:///x"
"""


def test_every_exit_code_is_documented() -> None:
    def codes(error: type[ReconcilerError]) -> Iterator[int]:
        yield error.exit_code
        for kind in error.__subclasses__():
            yield from codes(kind)

    expected = {str(code) for code in {0, *codes(ReconcilerError)}}
    assert set(table("Exit codes", page("cli"))) == set(table("Exit codes", page("runbook"))) == expected


def test_every_field_of_the_json_object_is_documented() -> None:
    assert list(table("The JSON object of `--once --json`", page("output"))) == list(RunOutcome().as_json())


def test_the_picture_shows_window_and_barrier() -> None:
    (picture,) = blocks("mermaid")
    assert "window" in picture
    assert "barrier" in picture


def test_links_to_files_hold() -> None:
    for place in re.findall(
        r"`((?:docker|ordering|sinks|consumer)/|LICENSE|\.ci/run)`", README + page("development/testing")
    ):
        assert (ROOT / place).exists()
