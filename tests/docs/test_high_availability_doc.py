"""`docs/high-availability.md` tells the truth: its commands and keys exist, the intervals are those of the code."""

import re

import pytest

from consumer.config.model import LimitsSection
from consumer.run import heartbeat
from tests.docs.test_readme import README, ROOT, check_command_line, words_of

TEXT = (ROOT / "docs" / "high-availability.md").read_text()


@pytest.mark.parametrize("text", sorted(set(re.findall(r"`(reconciler\s[^`]+)`", TEXT))))
def test_its_commands_exist(text: str) -> None:
    check_command_line(words_of(text))


def test_its_keys_exist() -> None:
    told = set(re.findall(r"`limits\.([a-z-]+)`", TEXT))
    assert told == {"lease-seconds", "retry-seconds", "stalled-seconds"}
    assert told <= {field.alias for field in LimitsSection.model_fields.values()}


def test_it_is_found_and_its_intervals_are_the_code_s() -> None:
    assert "docs/high-availability.md" in README
    lease = heartbeat.RedisLease("redis://127.0.0.1:1/0", "x", lease_s=6)
    assert lease._ttl_ms == 3000  # half as long
    assert heartbeat._RENEWALS == 3
