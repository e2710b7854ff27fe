"""`source.storage` as a config file has it: a directory that begins with `file:` is no secret's file."""

import json
from pathlib import Path

import pytest

from consumer.config.model import config_of
from ordering.errors import ConfigError

TEXT = """changefeed = "c"
[source]
storage = "%s"
[source.storage-options]
access-key-id = "k"
secret-access-key = "file:key"
[target]
uri = "sqlite:////tmp/x"
"""


def test_a_directory_is_named_and_a_secret_is_read(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("S3CRET\n")
    source = config_of(TEXT % "s3://b/p", tmp_path / "c.toml").source
    assert (source.storage, source.storage_options) == (
        "s3://b/p",
        {"access-key-id": "k", "secret-access-key": "S3CRET"},
    )
    text = "\n".join(line for line in TEXT.splitlines() if "key" not in line)
    assert config_of(text % f"file://{tmp_path}", tmp_path / "c.toml").source.storage == f"file://{tmp_path}"


@pytest.mark.parametrize("uri", ["file://", "file:///a/../b", "s3://b/p?region=x", "ftp://h/x", "kafka://h/t", "x"])
def test_what_is_no_directory_is_refused(uri: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("S3CRET\n")
    with pytest.raises(ConfigError) as caught:
        config_of(TEXT % uri, tmp_path / "c.toml")
    assert "S3CRET" not in str(caught.value)


def csv_told(**keys: str) -> str:
    """What is said of a `[source.csv]`; "" if nothing."""
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in keys.items())
    text = f'changefeed = "c"\n[source]\nstorage = "s3://b/p"\nprotocol = "csv"\n[source.csv]\n{lines}[target]\n'
    try:
        config_of(f'{text}uri = "sqlite:////tmp/x"\n', Path("c.toml"))
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"delimiter": "||"}, "ends as it begins"),  # a|, b and a, |b are the same bytes
        ({"delimiter": "aba"}, "ends as it begins"),
        ({"delimiter": "¦"}, "what a backslash escapes"),  # TiCDC escapes it byte by byte, as two characters
        ({"delimiter": "rx"}, "what a backslash escapes"),
        ({"null": "NULL"}, "from a text"),
        ({"null": "\\n"}, "from a text"),  # a line end
        ({"null": "\\r"}, "from a text"),
        ({"null": "\\\\"}, "from a text"),  # a backslash
        ({"null": "\\"}, "from a text"),
        ({"null": "\\|x", "delimiter": "|;"}, "from a text"),
        ({"terminator": ";;"}, "holds no line end"),  # who may write a text would write lines
        ({"terminator": "|\n"}, ""),
        ({"delimiter": "|;"}, ""),
        ({"null": "\\N"}, ""),
    ],
)
def test_csv_without_quotes_is_refused_where_texts_can_look_alike(keys: dict[str, str], told: str) -> None:
    found = csv_told(quote="", **keys)
    assert told in found
    assert bool(told) == bool(found)


@pytest.mark.parametrize(
    "keys",
    [
        {"quote": "5"}, {"quote": "e"}, {"quote": "-"}, {"null": "1e+21"}, {"null": "true"}, {"null": "-1.5"},
        {"terminator": "0"}, {"terminator": '"\n'}, {"delimiter": "+|"}, {"delimiter": '|"'},
    ],
)  # fmt: skip
def test_csv_with_quotes_is_refused_where_a_number_can_look_alike(keys: dict[str, str]) -> None:
    assert "can't be told from" in csv_told(**keys) or "holds" in csv_told(**keys)
    assert csv_told(**{name: "|;" for name in keys if name == "delimiter"}, null="NULL") == ""
