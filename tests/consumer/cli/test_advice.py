"""What a reader can paste, and what the list of commands holds."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from consumer.cli.main import main
from consumer.cli.shared import SECTIONS, cut
from consumer.operate.check import Finding
from consumer.runtime.advice import with_config
from ordering.errors import ConfigError
from sinks.server_error_hints import login_advice


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("a.toml", "see `reconciler ddl done a.toml 7`"),
        ("my feeds/a.toml", "see `reconciler ddl done 'my feeds/a.toml' 7`"),
        (None, "see `reconciler ddl done CONFIG 7`"),
    ],
)
def test_advice_names_the_file_that_was_given(path: str | None, told: str) -> None:
    assert with_config("see `reconciler ddl done CONFIG 7`", None if path is None else Path(path)) == told


def test_a_value_that_reads_like_the_word_stays() -> None:
    assert with_config("column CONFIG is too long", Path("a.toml")) == "column CONFIG is too long"


def test_every_command_is_in_one_section() -> None:
    listed = [name for section in SECTIONS.values() for name in section]
    assert sorted(listed) == sorted(main.commands)
    shown = CliRunner().invoke(main, ["--help"]).output
    assert all(len(line) <= 79 for line in shown.splitlines())
    assert all(words in shown for section in SECTIONS.values() for words in section.values())


def test_long_texts_say_that_they_are_cut() -> None:
    assert cut("fact\n  hint: do it", 99) == "fact; do it"
    assert cut("x" * 100, 99) == "x" * 98 + "…"


def test_a_line_of_the_check_says_at_once_how_it_stands() -> None:
    assert Finding("kafka", "1 topic").line() == "ok   kafka: 1 topic"
    assert Finding("redis", "gone", is_whole=False).line() == "warn redis: gone"
    assert Finding("target", "no", ConfigError("no")).line() == "FAIL target: no"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ('FATAL: database "shop" does not exist', "create the database"),
        ('FATAL: password authentication failed for user "a"', "check user, password"),
        ("server wants cleartext password", "sslrootcert"),
    ],
)
def test_a_refused_login_has_advice_that_fits(text: str, advice: str) -> None:
    assert advice in login_advice(text)
