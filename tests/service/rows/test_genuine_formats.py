"""One script in the formats of TiCDC's own encoders and file writer: every one ends as the upstream ended.

Unlike `tests.simple_protocol` and its like, which write Canal-JSON anew by what is known of a format, these recordings
hold no reading of ours (`tests/vectors/encoders/README.md`).
"""

import gzip
import json
import tarfile
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from tests.service.cells import VECTORS, Oracle, differences
from tests.service.lab import Feed
from tests.service.rows.test_simple_vectors import CONSISTENCIES
from tests.service.rows.test_storage_vectors import once, reading
from tests.storage_files import CsvOptions, write

pytestmark = pytest.mark.service

ENCODERS = VECTORS / "encoders"
FILES: dict[str, CsvOptions | None] = {
    "files-canal": None,
    "files-csv": CsvOptions(header=True),
    "files-csvold": CsvOptions(old_value=True, header=True, binary="hex"),
    "files-csvesc": CsvOptions(delimiter="|;", quote="", header=True),
}


def upstream() -> Oracle:
    found: Oracle = json.loads(gzip.decompress((ENCODERS / "formats.final.json.gz").read_bytes()))
    return found


def genuine(name: str) -> Iterator[Message]:
    """The messages of a recording, with their keys."""
    with gzip.open(ENCODERS / f"{name}.jsonl.gz") as lines:
        for line in lines:
            record = json.loads(line)
            yield Message(record["topic"], record["partition"], _held(record, "value") or b"", _held(record, "key"))


def _held(record: dict[str, Any], name: str) -> bytes | None:
    if f"{name}_b64" in record:
        return b64decode(record[f"{name}_b64"])
    return None if record[name] is None else record[name].encode()


@pytest.mark.cells("recording", by_turns=(("feed", "consistency"),))
@pytest.mark.parametrize("feed", ["sqlite", "mariadb"], indirect=True)
@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("recording", ["canal-json", "simple", "simple-avro", "open-protocol"])
def test_messages(feed: Feed, recording: str, consistency: str) -> None:
    sent = list(genuine(f"formats.{recording}"))
    feed.with_(source={"protocol": recording.removesuffix("-avro")}, target={"consistency": consistency}).send(sent)
    first = feed.once()
    assert differences(upstream(), feed.cells) == []
    feed.send(sent)
    again = feed.once()
    assert differences(upstream(), feed.cells) == []
    assert again.counts.rows_written == first.counts.rows_written


def lands(feed: Feed, protocol: str, sent: list[Message]) -> None:
    """Send messages to a changefeed, and check that its target equals upstream then."""
    feed.with_(source={"protocol": protocol}).send(sent)
    feed.once()
    assert differences(upstream(), feed.cells) == []


@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", ["simple-integrity", "simple-avro-integrity"])
def test_checksums(feed: Feed, name: str) -> None:
    sent = list(genuine(f"formats.{name}"))
    assert any(b'"checksum":' in message.value for message in genuine("formats.simple-integrity"))
    lands(feed, "simple", sent)


@pytest.mark.parametrize("feed", ["sqlite", "mariadb"], indirect=True)
def test_old_values_without_the_names_of_their_columns(feed: Feed) -> None:
    sent = list(genuine("formats.open-updated"))
    assert any(b'"p":{"t":' in message.value for message in sent)
    lands(feed, "open-protocol", sent)


def delimited(content: bytes) -> bytes:
    """The recording that has no quotes, with another delimiter than the `||` that it was made with.

    That one is refused: a text that ends in a bar would end the same way as one that its neighbour begins with. No text
    of the recording has a bar, so nothing else of it changes.
    """
    return content.replace(b"||", b"|;")


@pytest.mark.cells(by_turns=("name", "feed"))
@pytest.mark.parametrize("feed", ["sqlite", "mariadb"], indirect=True)
@pytest.mark.parametrize("name", FILES)
def test_files(feed: Feed, name: str, tmp_path: Path) -> None:
    root = tmp_path / "files"
    with tarfile.open(ENCODERS / f"formats.{name}.tar.gz") as archive:
        files = {m.name: held.read() for m in archive if (held := archive.extractfile(m))}
    write({path: delimited(content) if name == "files-csvesc" else content for path, content in files.items()}, root)
    once(reading(feed, root, FILES[name]))
    assert differences(upstream(), feed.cells) == []
