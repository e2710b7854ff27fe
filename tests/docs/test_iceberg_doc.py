"""`docs/iceberg.md`: its config is applied, and its script reads what came of it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from sinks.uri import parse_target_uri
from tests.docs.test_readme import README, ROOT
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, insert, watermarks
from tests.sinks.iceberg_cells import IcebergCells

TEXT = (ROOT / "docs" / "iceberg.md").read_text()
CONFIG, SCRIPT = (re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL)[0] for kind in ("toml", "python"))


def test_the_script_reads_each_state(tmp_path: Path) -> None:
    uri = tomllib.loads(CONFIG)["target"]["uri"].replace("/var/lib/lake", str(tmp_path))
    catalog = parse_target_uri(uri).path
    feed = LocalFeed.into(uri, IcebergCells(Path(catalog)), tmp_path)
    for more in (begun(), [insert("d.t", 4, id=2, v=2, s="two"), *watermarks(5)]):
        feed.send(more)
        feed.once()
    command = [sys.executable, "-c", SCRIPT, catalog, "d", "t"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert told.returncode == 0, told.stderr
    rows, *states = told.stdout.splitlines()
    assert sorted(re.findall(r"'id': (\d)", rows)) == ["1", "2"]
    assert states == [f"{at(3)} 1", f"{at(5)} 2"]


def test_it_is_found() -> None:
    assert "docs/iceberg.md" in README
