"""Options: a config's keys, typed as there; what is unknown, or would need a target, is refused."""

from pathlib import Path

import pytest

from consumer.spark_source.options import read_options
from ordering.errors import ConfigError
from ordering.events import TableName

TOLD = {"source.bootstrap-servers": "h:1", "source.topics": "a, b"}


def test_keys_of_the_config_and_own_ones() -> None:
    more = {"maxrowspertrigger": "5", "limits.message-bytes": "1024", "handle-keys": "s.o(id, r); s.i(c)"}
    more["source.ignored-watermarks"] = "a/0/7, b/1/0"
    found = read_options({**TOLD, **more, "source.kafka.client.id": "0123", "source.start-ts": "7"})
    config = found.config
    assert config.source.ignored_watermarks == ["a/0/7", "b/1/0"]
    assert (config.source.topics, config.source.start_ts, found.max_rows) == (["a", "b"], 7, 5)
    assert (config.limits.message_bytes, config.source.kafka) == (1024, {"client.id": "0123"})
    assert found.handle_keys == {TableName("s", "o"): ("id", "r"), TableName("s", "i"): ("c",)}


def test_a_config_file_with_options_before_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "orders.toml"
    path.write_text(
        'changefeed = "o"\n[source]\nbootstrap-servers = "h:1"\ntopics = ["~a,b"]\n[target]\nuri = "sqlite:////tmp/o"\n'
    )
    config = read_options({"path": str(path), "source.bootstrap-servers": "k:2"}).config
    assert (config.changefeed, config.source.topics, config.source.bootstrap_servers) == ("o", ["~a,b"], "k:2")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"topics": "a"}, "no option 'topics'"),
        ({"target.uri": "sqlite:///x"}, "no option 'target.uri'"),
        ({"source.topic": "a"}, "source.topic"),
        ({"maxRowsPerTrigger": "0"}, "no positive whole number"),
        ({"end-ts": "now"}, "no positive whole number"),
        ({"table": "orders"}, "DATABASE.TABLE"),
        ({"handle-keys": "orders(id)"}, "handle-keys can't be read"),
        ({"source.protocol": "simple"}, "does not know source.protocol"),
    ],
)
def test_what_is_refused(more: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_options({**TOLD, **more})
    assert told in error.value.fact


def test_a_storage_sink_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"does not know source\.storage"):
        read_options({"source.storage": f"file://{tmp_path}"})
