"""`docs/guarantees.md` names tests that are there, `docs/security.md` options and properties that are known."""

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest

from consumer.config.redis_uri import check_redis_uri
from consumer.kafka.property_rules import faults
from sinks.uri import parse_target_uri

ROOT = Path(__file__).parent.parent.parent
GUARANTEES = (ROOT / "docs" / "guarantees.md").read_text()
SECURITY = (ROOT / "docs" / "security.md").read_text()
TESTS = re.findall(r"^\|.*\| `([^`]+)` \|$", GUARANTEES, re.MULTILINE)
THREATS = [line for line in SECURITY.split("## ")[1].splitlines() if line.startswith("| ")][1:]
AGAINST = [re.findall(r"`([a-z_]+/[a-z_/]*test_[^`]+)`", line.rsplit(" | ", 1)[1]) for line in THREATS]


def test_every_promise_has_a_test() -> None:
    rows = [line for line in GUARANTEES.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) == len(TESTS) > 20


def test_every_threat_has_a_test() -> None:
    assert len(THREATS) >= 10
    assert all(AGAINST)


@pytest.mark.parametrize("named", sorted({*TESTS, *(named for some in AGAINST for named in some)}))
def test_named_tests_are_there(named: str) -> None:
    path, _, function = named.partition("::")
    tree = ast.parse((ROOT / "tests" / path).read_text())
    found = [
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert found
    assert not function or function in found


def test_the_readme_leads_there() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "docs/guarantees.md" in readme
    assert "docs/security.md" in readme


@pytest.mark.parametrize("text", re.findall(r'^(?:target|redis)\.uri = "(.*)"$', SECURITY, re.MULTILINE))
def test_the_examples_of_uris_are_some(text: str) -> None:
    if text.startswith("redis"):
        check_redis_uri(text)
    else:
        assert parse_target_uri(text).options


def test_the_example_for_kafka_is_one() -> None:
    block = re.search(r"\[source\.kafka\]\n(.*?)```", SECURITY, re.DOTALL)
    assert block
    assert faults(dict(re.findall(r'^"(.+)" = "(.+)"$', block[1], re.MULTILINE))) == []


def test_an_audit_that_compares_nothing_says_so() -> None:
    nowhere = {**os.environ, "https_proxy": "http://127.0.0.1:1"}
    done = subprocess.run([ROOT / "dev", "audit"], capture_output=True, text=True, check=False, env=nowhere, timeout=60)
    assert done.returncode == 3, done.stderr
    assert "nothing was compared" in done.stderr
