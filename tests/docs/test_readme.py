"""The README tells the truth: its commands exist and run, its sample is the defaults, its tables are complete."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from pydantic import BaseModel

from consumer.cli import main
from consumer.config import Config, EventFilterSection, config_from
from consumer.filters.changefeed import read_filter
from consumer.runner import Outcome
from ordering.errors import ReconcilerError

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def table(heading: str) -> dict[str, list[str]]:
    """The first table below a heading: first cell without backticks -> the other cells."""
    section = re.split(rf"^#+ {re.escape(heading)}\n", README, flags=re.MULTILINE)[1]
    rows = [line for line in re.split(r"^#", section, flags=re.MULTILINE)[0].splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]
    return {first.strip("`"): rest for first, *rest in cells}


EVERYWHERE = README + "".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
LINES = [line for block in blocks("bash") for line in block.splitlines() if line and not line.startswith("#")]
INLINE = re.findall(r"`(reconciler [^`]+)`", README)


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
    assert blocks("bash")[0].splitlines() == ["./dev demo", "./dev test"]
    assert README.index("```bash") < 800


@pytest.mark.parametrize("line", LINES)
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
        case _:
            assert line == "python3 -m venv venv"


@pytest.mark.parametrize("text", INLINE)
def test_commands_in_the_text_exist(text: str) -> None:
    check_command_line(words_of(text))


def words_of(text: str) -> list[str]:
    """The words after `reconciler`; a command that is only mentioned gets its arguments."""
    words = shlex.split(text)[1:]
    mentioned = {"status": ["CONFIG"], "load": ["CONFIG", "--dump", "DIR"], "topic retire": ["CONFIG", "NAME"]}
    return words + mentioned.get(" ".join(words), [])


def test_every_command_is_documented() -> None:
    told = " ".join(table("Commands"))
    for name, command in commands():
        assert f"reconciler {name}" in told
        for option in (p for p in command.params if isinstance(p, click.Option)):
            assert any(f"`{opt}" in EVERYWHERE or f" {opt}" in EVERYWHERE for opt in option.opts), (
                f"{name} {option.opts}"
            )


def test_the_sample_is_the_defaults() -> None:
    sample, _ = blocks("toml")
    values = tomllib.loads(sample)
    config = config_from(values, "README.md")
    required = {
        "changefeed": values["changefeed"],
        "source": {name: values["source"][name] for name in ("bootstrap-servers", "topics")},
        "target": {"uri": values["target"]["uri"]},
    }
    assert config == config_from(required, "required keys")


def test_the_example_of_a_filter_is_one() -> None:
    _, example = blocks("toml")
    required = {
        "changefeed": "x",
        "source": {"bootstrap-servers": "x", "topics": ["x"]},
        "target": {"uri": "sqlite:///x"},
    }
    section = config_from({**required, **tomllib.loads(example)}, "README.md").filter
    assert len(read_filter(section).events.filters) == 1
    told = " ".join(table("Filters"))
    assert all(field.alias in told for field in EventFilterSection.model_fields.values())


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


def test_the_keys_in_the_table_exist_and_have_their_defaults() -> None:
    fields = dict(keys(Config))
    told = table("Config reference")
    assert [key for key in fields if key in told] == list(told), "in the order of the reference"
    for key, cells in told.items():
        default = cells[0].strip("`")
        if fields[key].is_required():
            assert default == "required", key
            continue
        values = tomllib.loads(f"{LEAST}\n{key} = {default}")
        assert config_from(values, "") == config_from(tomllib.loads(LEAST), ""), key
    assert {key for key, field in fields.items() if field.is_required()} <= set(told)


def test_every_exit_code_is_documented() -> None:
    def codes(error: type[ReconcilerError]) -> Iterator[int]:
        yield error.exit_code
        for kind in error.__subclasses__():
            yield from codes(kind)

    assert set(table("Exit codes")) == {str(code) for code in {0, *codes(ReconcilerError)}}


def test_every_field_of_the_json_object_is_documented() -> None:
    assert list(table("The JSON object of `--once --json`")) == list(Outcome().as_json())


def test_the_picture_shows_window_and_barrier() -> None:
    (picture,) = blocks("mermaid")
    assert "window" in picture
    assert "barrier" in picture


def test_links_to_files_hold() -> None:
    for place in re.findall(r"`((?:docker|ordering|sinks|consumer)/|LICENSE|\.ci/run)`", README):
        assert (ROOT / place).exists()
