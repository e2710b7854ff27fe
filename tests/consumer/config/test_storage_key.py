"""`source.storage` as a config file has it: a directory that begins with `file:` is no secret's file."""

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
