"""What a config may hold is found out before anything is started."""

from pathlib import Path
from typing import Any

import pytest

from consumer.config.model import config_from, load_config
from ordering.errors import ConfigError


def values(**sections: dict[str, Any]) -> dict[str, Any]:
    least = {"source": {"bootstrap-servers": "h:1", "topics": ["t"]}, "target": {"uri": "sqlite:////tmp/x"}}
    merged = {name: {**least.get(name, {}), **sections.get(name, {})} for name in {*least, *sections}}
    return {"changefeed": "c", **merged}


def event_filter(**values: Any) -> dict[str, dict[str, Any]]:
    return {"filter": {"event-filters": [{"matcher": ["*.*"], **values}]}}


def test_the_least_config_is_enough() -> None:
    assert config_from(values(), "here").filter.rules == ["*.*"]


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        ({"filter": {"rules": ["nodot"]}}, "'filter.rules': 'nodot' is not of the form schema.table"),
        ({"filter": {"rules": ["/(/.t"]}}, "holds no regular expression"),
        ({"filter": {"ignore-txn-start-ts": [1]}}, "messages do not tell at which TSO"),
        (event_filter(matcher=["a.%"]), "'filter.event-filters.0.matcher': 'a.%' holds '%'"),
        (event_filter(matcher=[]), "'filter.event-filters.0.matcher'"),
        ({"filter": {"event-filters": [{}]}}, "key 'filter.event-filters.0.matcher' is missing"),
        (
            event_filter(**{"ignore-event": ["all"]}),
            "'filter.event-filters.0.ignore-event': unknown event 'all'",
        ),
        (event_filter(**{"ignore-sql": ["a", "(?=b)"]}), "'(?=b)' holds no regular expression"),
        (
            event_filter(**{"ignore-insert-value-expr": "a >"}),
            "'filter.event-filters.0.ignore-insert-value-expr': 'a >' is no SQL condition",
        ),
        (event_filter(**{"ignore-delete-value-expr": "now() > a"}), "can't be computed here; what can be: comparisons"),
        (event_filter(colour=1), "unknown key 'filter.event-filters.0.colour'"),
        ({"source": {"topics": ["~("]}}, "'source.topics': '~(' holds no regular expression"),
        ({"source": {"topics": ["~a", "b"]}}, "beside other entries"),
        ({"source": {"topics": []}}, "'source.topics'"),
        ({"source": {"time-zone": "Mars/Base"}}, "'source.time-zone' must be a time zone"),
        ({"limits": {"window-bytes": "many"}}, "'limits.window-bytes' must be a number of bytes"),
        ({"target": {"uri": "iceberg+sqlite:////c?warehouse=/w", "audit": True}}, "audit is not of Iceberg"),
        ({"target": {"uri": "Iceberg+SQLite:////c?warehouse=/w", "audit": True}}, "audit is not of Iceberg"),
        ({"target": {"uri": "oracle://h"}}, "unknown scheme 'oracle'"),
        ({"source": {"colour": 1}}, "unknown key 'source.colour'"),
        ({"spark": {"mastr": "local[2]"}}, "'mastr' is neither master, native nor a setting"),
        ({"spark": {"spark": {"driver": {"memory": "2g"}}}}, 'in quotes, as in "spark.driver.memory" = ...'),
    ],
)
def test_what_is_wrong_is_told_with_its_key(sections: dict[str, dict[str, Any]], told: str) -> None:
    with pytest.raises(ConfigError, match="the config is wrong") as caught:
        config_from(values(**sections), "here")
    assert told in str(caught.value)


def test_a_targets_kind_is_the_same_in_capitals() -> None:
    found = config_from(values(target={"uri": "TiDB://Root:Pass@H:4000"}), "here").target
    assert (found.uri, found.consistency) == ("tidb://Root:Pass@H:4000", "row")


def test_rules_come_from_files_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "tables.txt").write_text("# mine\na.*\n!a.b\n")
    (tmp_path / "config.toml").write_text("""
changefeed = "c"
source = { bootstrap-servers = "h:1", topics = ["t"] }
target = { uri = "sqlite:////tmp/x" }
[filter]
rules = ["@tables.txt", "c.*"]
ignore-txn-start-ts = []
[[filter.event-filters]]
matcher = ["@tables.txt"]
ignore-event = ["all dml"]
""")
    found = load_config(tmp_path / "config.toml").filter
    assert found.rules == ["a.*", "!a.b", "c.*"]
    assert found.event_filters[0].matcher == ["a.*", "!a.b"]


def test_files_of_windows_editors_are_read(tmp_path: Path) -> None:
    """They begin with a byte order mark, and their lines end in two characters."""
    path = tmp_path / "config.toml"
    (tmp_path / "uri").write_text("sqlite:////tmp/x\r\n", encoding="utf-8-sig", newline="")
    text = (
        'changefeed = "c"\r\nsource = { bootstrap-servers = "h:1", topics = ["t"] }\r\n[target]\r\nuri = "file:uri"\r\n'
    )
    path.write_text(text, encoding="utf-8-sig", newline="")
    found = load_config(path)
    assert (found.changefeed, found.target.uri) == ("c", "sqlite:////tmp/x")
    path.write_text(text, encoding="utf-16")
    with pytest.raises(ConfigError, match="it is no UTF-8 text"):
        load_config(path)


@pytest.mark.parametrize("protocol", ["debezium-avro", "canal", "maxwell", "craft"])
def test_protocols_that_are_not_read_are_refused_with_the_reason(protocol: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from(values(source={"protocol": protocol}), "here")
    assert "key 'source.protocol' is of a protocol that is not read" in str(caught.value)
    assert "enable-tidb-extension=true" in str(caught.value)


def test_debezium_is_read_only_where_its_losses_are_accepted() -> None:
    with pytest.raises(ConfigError) as caught:
        config_from(values(source={"protocol": "debezium"}), "here")
    for loss in ("DECIMAL", "NULL", "zero and invalid dates", "years 0 to 69", "lossy-values"):
        assert loss in str(caught.value)
    for accepted in ("stop", "accept"):
        config_from(values(source={"protocol": "debezium", "lossy-values": accepted}), "here")
