"""Where claim-check files may be, and the texts that TiCDC would have sent of what the upstream shows."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.config.model import config_from, load_config
from consumer.large_messages.locations import below, found_in, place_of, shown
from consumer.large_messages.reference import is_reference, read_reference, reference
from consumer.large_messages.upstream_values import SourceColumn, parameter_of, text_of
from ordering.errors import ConfigError, InputError
from ordering.events import Position

HERE = Position("t", 1, 42)
LEAST = {
    "changefeed": "c",
    "source": {"bootstrap-servers": "h:1", "topics": ["t"]},
    "target": {"uri": "sqlite:////tmp/x"},
}


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("file:///a/b", "file:///a/b"),
        ("file:/a/b", "file:///a/b"),
        ("file:///a//b/", "file:///a/b"),
        ("s3://bucket/a/b", "s3://bucket/a/b"),
        ("s3:/bucket/a/b", "s3://bucket/a/b"),
        ("s3://bucket/", "s3://bucket/"),
        ("gcs://bucket/a", "gs://bucket/a"),
        ("azblob://box/a", "azure://box/a"),
        ("s3://bucket/%2e%2e/a", "s3://bucket/%2e%2e/a"),
    ],
)
def test_how_places_are_spelled(location: str, place: str) -> None:
    assert str(place_of(location)) == place


@pytest.mark.parametrize(
    "location",
    ["", "/a/b", "a/b", "file:a", "file://host/a", "file:///a/../b", "file:///a/./b", "s3://b/a//c", "s3://b/../c",
     "s3:///", "s3://b/a\\..\\c", "s3://b/a?x=1", "s3://b/a#x", "file:///a\0b", "file:///a\nb", "FILE:///a"],
)  # fmt: skip
def test_what_is_no_place(location: str) -> None:
    with pytest.raises(ValueError, match=r"of the form|holds|names"):
        place_of(location)


def test_whole_parts_are_compared() -> None:
    assert below(place_of("s3://b/a/x"), place_of("s3://b/a"))
    assert not below(place_of("s3://b/ab/x"), place_of("s3://b/a"))
    assert not below(place_of("s3://b/a"), place_of("s3://b/a"))
    assert not below(place_of("gs://b/a/x"), place_of("s3://b/a"))


def test_the_longest_prefix_maps() -> None:
    moved = {"s3://b/a": "file:///m", "s3://b/a/deep": "gs://other/x"}
    assert found_in("s3://b/a/1.json", [], moved, HERE) == (place_of("file:///m"), "1.json")
    assert found_in("s3://b/a/deep/er/1.json", ["s3://b"], moved, HERE) == (place_of("gs://other/x"), "er/1.json")
    assert found_in("s3://b/1.json", ["s3://b"], moved, HERE) == (place_of("s3://b"), "1.json")


@given(st.lists(st.sampled_from(["..", ".", "a", "", "b%2e", "x.json"]), max_size=6))
def test_no_location_leads_out_of_its_place(parts: list[str]) -> None:
    try:
        _, path = found_in("file:///claims/" + "/".join(parts), ["file:///claims"], {}, HERE)
    except InputError:
        return
    assert Path("/claims", path).resolve().is_relative_to("/claims")


def test_a_reference_is_below_every_image() -> None:
    found = reference("file:///x", HERE)
    assert is_reference(found)
    assert found < b"{"
    assert (read_reference(found).location, read_reference(found).position) == ("file:///x", HERE)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("int(5) unsigned zerofill", "00007", "7"),
        ("year", "0000", "0"),
        ("float", "1.234567807609214e20", "123456780000000000000"),
        ("float(7,2)", "0.10000000149011612", "0.1"),
        ("double", "1.25e-7", "0.000000125"),
        ("bit(12)", b"\x01\x05", "261"),
        ("binary(4)", b"\x00\xff", "\x00\xff"),
        ("longblob", "ab", "ab"),
        ("enum('binary(4)','b')", "2", "2"),
        ("varchar(10)", "é", "é"),
        ("decimal(10,3)", "1.500", "1.500"),
    ],
)
def test_texts_as_ticdc_sends_them(kind: str, value: str | bytes, text: str) -> None:
    column = SourceColumn("c", kind)
    assert text_of(column, value) == text
    assert text_of(column, None) is None


def test_parameters_equal_what_the_column_holds() -> None:
    assert parameter_of(SourceColumn("c", "float"), "0.1") == 0.10000000149011612
    assert parameter_of(SourceColumn("c", "varbinary(3)"), "\x00\xff") == b"\x00\xff"
    assert parameter_of(SourceColumn("c", "set('a')"), "1") == 1
    with pytest.raises(ValueError, match="invalid literal"):
        parameter_of(SourceColumn("c", "bigint"), "x")


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"claim-check": {"locations": ["/tmp/x"]}}, "'source.claim-check.locations': '/tmp/x' not of the form"),
        ({"claim-check": {"locations": ["ftp://h/x"]}}, "no store of ftp:// can be opened"),
        ({"claim-check": {"locations": ["s3://b/x"], "options": {"colour": "s3cret"}}}, "colour"),
        ({"claim-check": {"map": {"s3://b/x": "file://host/x"}}}, "names a host"),
        ({"claim-check": {"colour": 1}}, "unknown key 'source.claim-check.colour'"),
        ({"upstream": {"uri": "mysql://u:s3cret@h"}}, "'source.upstream.uri' is no URI of a TiDB"),
        ({"upstream": {"uri": "tidb://h:4000"}}, "'source.upstream.uri' lacks host or user"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(section: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from({**LEAST, "source": {**LEAST["source"], **section}}, "here")  # type: ignore[dict-item]
    assert told in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_places_are_no_secret_files_but_options_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("word\n")
    monkeypatch.setenv("BUCKET", "claims")
    (tmp_path / "config.toml").write_text(f"""
changefeed = "c"
target = {{ uri = "sqlite:////tmp/x" }}
[source]
bootstrap-servers = "h:1"
topics = ["t"]
[source.claim-check]
locations = ["file:///claims", "s3://${{BUCKET}}/x"]
map = {{ "file:///claims" = "file:///mnt/x" }}
options = {{ region = "eu", access-key-id = "us", secret-access-key = "file:{tmp_path}/secret" }}
""")
    found = load_config(tmp_path / "config.toml").source.claim_check
    assert found.locations == ["file:///claims", "s3://claims/x"]
    assert found.map == {"file:///claims": "file:///mnt/x"}
    assert found.options == {"region": "eu", "access-key-id": "us", "secret-access-key": "word"}


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("azure://b/x?sig=s3cret", "'azure://b/x'..."),
        ("s3://b/x#s3cret", "'s3://b/x'..."),
        ("s3://key:s3cret@b/x", "'s3://***@b/x'"),
        ("s3:/key:s3cret@b/x", "'s3:/***@b/x'"),
        ("file:///a/b@c", "'file:///a/b@c'"),
        ("s3://b/" + "x" * 1000, repr("s3://b/" + "x" * 293) + "..."),
    ],
)
def test_errors_show_no_secret_of_a_location(location: str, told: str) -> None:
    assert shown(location) == told
