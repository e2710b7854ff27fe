"""Configs that take long to read or to write as TOML are refused at once: reading them holds up the whole process."""

import time
from pathlib import Path

import pytest

from consumer.serve.fleet import Fleet
from tests.serving.conftest import Ask
from tests.serving.test_serving_rules import TEXT, TOKEN

_SHAPES = {
    "100,000 keys": "".join(f"k{i} = 1\n" for i in range(90_000)),
    "1,001 keys": "".join(f"k{i} = 1\n" for i in range(1_001)),
    "one dotted key": "a" + ".a" * 500_000 + " = 1\n",
    "dotted keys on lines just short enough": "".join(f"k{i}" + ".a" * 2_000 + " = 1\n" for i in range(16)),
    "keys of twelve parts": "".join(f"a.b.c.d.e.f.g.h.i.j.k.x{i} = 1\n" for i in range(990)),
    "a table of twelve parts": "".join(f"[a.b.c.d.e.f.g.h.i.j.k.x{i}]\n" for i in range(490)),
    "tables": "".join(f"[t{i}]\n" for i in range(100_000)),
    "arrays": "a = [" + "[" * 4_000 + "]" * 4_000 + "]\n",
    "inline tables": "a = " + "{a=" * 1_900 + "1" + "}" * 1_900,
    "a long list": "a = [\n" + "1,\n" * 200_000 + "]\n",
    "comments": "#\n" * 500_000,
}


@pytest.mark.parametrize("shape", _SHAPES)
def test_a_config_that_takes_long_to_read(asking: Ask, folder: Path, shape: str) -> None:
    body = (TEXT + _SHAPES[shape])[: 1 << 20].encode()
    client = asking(Authorization=f"Bearer {TOKEN}")
    began = time.process_time()
    answer = client.post("/api/v2/changefeeds", content=body, headers={"Content-Type": "application/toml"})
    assert time.process_time() - began < 8  # about two seconds for the slowest; minutes to years before
    assert answer.status_code == 400, answer.text
    assert answer.json()["hint"]
    assert list(folder.iterdir()) == []


def test_a_config_does_not_grow_by_changes(asking: Ask, fleet: Fleet, folder: Path) -> None:
    (folder / "x.toml").write_text(TEXT)
    fleet.add(folder / "x.toml")
    client = asking(Authorization=f"Bearer {TOKEN}")
    rules = [f"d{i}.*" for i in range(995)]
    answer = client.request("PUT", "/api/v2/changefeeds/x", json={"filter": {"rules": rules}})
    assert answer.status_code == 400
    assert "more than 1000 values" in answer.text
    assert (folder / "x.toml").read_text() == TEXT
