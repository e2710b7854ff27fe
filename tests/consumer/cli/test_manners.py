"""The command line's manners: examples that parse, completion, no colours in files, `init` that overwrites nothing."""

import os
import pty
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from consumer.cli import init
from consumer.cli.main import main
from consumer.config.model import load_config


def commands(
    group: click.Group = main, prefix: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*prefix, name))
        else:
            yield (*prefix, name), command


ALL = list(commands())


def reconciler(*arguments: object, **more: str) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) for path, _ in ALL])
def test_every_command_has_examples_that_parse(path: tuple[str, ...], command: click.Command) -> None:
    help_text = reconciler(*path, "--help").stdout
    assert re.search(r"^  Examples?:$", help_text, re.MULTILINE)
    lines = re.findall(r"^ +(?:[A-Z_]+=.* )?(reconciler .*)$", help_text, re.MULTILINE)
    assert lines
    for line in lines:
        words = shlex.split(line.split(" > ")[0].split("  ")[0])[1:]
        assert tuple(words[: len(path)]) == path
        command.make_context(path[-1], words[len(path) :])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_the_shell(shell: str) -> None:
    text = reconciler("completion", shell).stdout
    assert "_RECONCILER_COMPLETE" in text
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


def test_completion_knows_commands() -> None:
    asked = {"_RECONCILER_COMPLETE": "bash_complete", "COMP_WORDS": "reconciler st", "COMP_CWORD": "1"}
    program = Path(sys.executable).parent / "reconciler"
    done = subprocess.run(
        [program], env={**os.environ, **asked}, capture_output=True, text=True, check=False, timeout=60
    )
    assert "plain,status" in done.stdout.split()


def test_init_by_options_writes_what_they_say(tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    options = ("--bootstrap-servers", "k:9092", "--topic", "a", "--topic", "b", "--redis", "", "--rule", "shop.*")
    done = reconciler("init", file, *options, "--target", "mysql://u:p@h:3306", "--consistency", "row")
    assert done.exit_code == 0, done.output
    config = load_config(file)
    assert (config.changefeed, config.source.topics, config.redis.uri) == ("orders", ["a", "b"], "")
    assert (config.target.uri, config.target.consistency) == ("mysql://u:p@h:3306", "row")
    assert config.filter.rules == ["shop.*"]
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_text()
    # what is said about short values stands in one column, whatever they are
    assert {
        line.index("  # ") for line in before.splitlines() if line.startswith(("changefeed", "topics", "rules"))
    } == {39}
    again = reconciler("init", file)
    assert (again.exit_code, file.read_text()) == (2, before)
    assert "is there already" in again.stderr


def test_init_refuses_what_the_config_would(tmp_path: Path) -> None:
    done = reconciler("init", tmp_path / "x.toml", "--target", "oracle://h")
    assert done.exit_code == 2
    assert "target.uri" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_init_asks_on_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    file = tmp_path / "asked.toml"
    process = subprocess.Popen(
        [sys.executable, "-m", "consumer.cli", "init", file], stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.write(ours, b"mine\nkafka:9092\n\n\n\n")
    assert process.wait(60) == 0
    os.close(ours)
    values = tomllib.loads(file.read_text())
    assert (values["changefeed"], values["source"]["bootstrap-servers"]) == ("mine", "kafka:9092")
    assert values["source"]["topics"] == ["ticdc-test"]


def test_init_judges_each_answer_when_it_is_given_and_can_do_without_redis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(init, "is_asked", lambda: True)
    answers = [
        "my orders",
        "orders",
        "kafka://k",
        "k:9092",
        "a b",
        "~cdc_.*",
        "oracle://h",
        "mysql://u:p@h:3306",
        "none",
    ]
    done = CliRunner().invoke(main, ["init", str(tmp_path / "x.toml")], input="\n".join(answers) + "\n")
    assert done.exit_code == 0, done.output
    wrong = [
        "'changefeed' may hold letters",
        "must be addresses",
        "'a b' is no name of a topic",
        "unknown scheme 'oracle'",
    ]
    assert [text in done.output for text in wrong] == [True] * 4
    assert done.output.count("Id of the changefeed") == 2
    made = load_config(tmp_path / "x.toml")
    assert (made.changefeed, made.source.topics, made.redis.uri) == ("orders", ["~cdc_.*"], "")
