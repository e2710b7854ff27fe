"""What a config may hold is found out before anything is started."""

from typing import Any

import pytest

from consumer.config import config_from
from ordering.errors import ConfigError


def values(**sections: dict[str, Any]) -> dict[str, Any]:
    least = {"source": {"bootstrap-servers": "h:1", "topics": ["t"]}, "target": {"uri": "sqlite:////tmp/x"}}
    merged = {name: {**least.get(name, {}), **sections.get(name, {})} for name in {*least, *sections}}
    return {"changefeed": "c", **merged}


def test_the_least_config_is_enough() -> None:
    assert config_from(values(), "here").filter.rules == ["*.*"]


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        ({"filter": {"rules": ["no-dot"]}}, "'filter.rules': filter.rules: 'no-dot' is not of the form schema.table"),
        ({"filter": {"rules": ["/(/.t"]}}, "holds no regular expression"),
        ({"source": {"topics": ["~("]}}, "'source.topics': source.topics: '~(' is no regular expression"),
        ({"source": {"topics": ["~a", "b"]}}, "beside other entries"),
        ({"source": {"topics": []}}, "'source.topics'"),
        ({"source": {"time-zone": "Mars/Base"}}, "'source.time-zone': must be a time zone"),
        ({"limits": {"window-bytes": "many"}}, "'limits.window-bytes': must be a number of bytes"),
        ({"target": {"uri": "oracle://h"}}, "unknown scheme 'oracle'"),
        ({"source": {"colour": 1}}, "unknown key 'source.colour'"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(sections: dict[str, dict[str, Any]], told: str) -> None:
    with pytest.raises(ConfigError, match="the config is wrong") as caught:
        config_from(values(**sections), "here")
    assert told in str(caught.value)
