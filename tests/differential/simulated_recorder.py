"""Stands for the recorder, which the repository does not hold: takes its arguments, knows of statements one.

Each `CREATE DATABASE` is a message and a watermark, all else nothing. `REFUSED...` stops it as the true one is stopped,
with the statement's name; `FAILED` without.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_BASE = 1767225600000 << 18


def messages(script: str) -> Iterator[dict[str, object]]:
    """What a script sends."""
    shared = {"database": "", "table": "", "pkNames": None, "data": None, "old": None, "mysqlType": None}
    for number, name in enumerate(re.findall(r"^CREATE DATABASE (\w+);", script, re.MULTILINE)):
        ts = _BASE + ((number + 1) << 18)
        ddl = {"type": "QUERY", "isDdl": True, "sql": f"CREATE DATABASE `{name}`", "_tidb": {"commitTs": ts}}
        yield {**shared, **ddl, "database": name}
        for _ in range(3):
            yield {**shared, "type": "TIDB_WATERMARK", "isDdl": False, "sql": "", "_tidb": {"watermarkTs": ts + 1}}


def main() -> int:
    """As the recorder."""
    told = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=False))
    script = Path(told["-script"]).read_text()
    if found := re.search(r"^REFUSED \w+", script, re.MULTILINE):
        print(f"panic: {found[0]};: [parser:1064]You have an error", file=sys.stderr)
        return 2
    if "FAILED" in script:
        return 2
    lines = (
        json.dumps({"topic": "ticdc", "partition": number % 4 - 1 if number % 4 else 0, "value": json.dumps(one)})
        for number, one in enumerate(messages(script))
    )
    Path(told["-out"]).write_text("".join(f"{line}\n" for line in lines))
    Path(told["-dump"]).write_text("{}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
