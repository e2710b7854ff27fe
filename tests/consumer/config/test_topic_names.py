"""Which topics `source.topics` means: linear in time, whoever named them; and what can be a topic's name."""

import time

import pytest

from consumer.kafka.topic_names import matcher, topic_name
from ordering.errors import ConfigError

LONGEST = "a" * 249


@pytest.mark.parametrize("pattern", ["~(a+)+b", "~(a|aa)*b", "~(a|a?)+b", "~(.*)*(.*)*(.*)*b", "~([a-z]+)*B"])
def test_no_expression_takes_long_for_any_name(pattern: str) -> None:
    """Whoever may create a changefeed names both: Python's own expressions would hold the process for years."""
    begun = time.thread_time()
    assert not matcher([pattern])(LONGEST)
    assert time.thread_time() - begun < 1


def test_an_expression_matches_whole_names() -> None:
    matches = matcher(["~cdc_[a-z]+"])
    assert [name for name in ("cdc_a", "xcdc_a", "cdc_a1", "cdc_") if matches(name)] == ["cdc_a"]


@pytest.mark.parametrize("pattern", ["~(?!old).*", "~(a)\\1", "~("])
def test_what_takes_no_linear_time_is_refused_with_the_syntax(pattern: str) -> None:
    with pytest.raises(ConfigError, match="no regular expression") as told:
        matcher([pattern])
    assert "RE2" in told.value.hint


@pytest.mark.parametrize("name", ["a b", "file:/etc/passwd", "mysql://x", "a" * 250, "\u202e"])
def test_what_can_be_no_topic_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="no name of a topic"):
        topic_name(name)
    assert topic_name("") == ""
    assert topic_name(LONGEST) == LONGEST
