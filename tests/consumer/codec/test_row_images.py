"""Keys read out of raw images are those of the images decoded whole."""

from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.codec.row_images import TableKeys
from ordering.events import TableName
from ordering.rows.identity import row_key

NAME = TableName("d", "t")
TEXTS = st.text(alphabet="a\"\\',{:}é\n", max_size=4)
COLUMNS = st.lists(TEXTS, min_size=1, max_size=4, unique=True)


class Update(NamedTuple):
    """An UPDATE: names of the key's columns, both images whole, and the columns that `old` holds."""

    key: list[str]
    image: dict[str, str]
    old: dict[str, str]
    sent: set[str]


@st.composite
def updates(draw: st.DrawFn) -> Update:
    """Images of which some columns differ; what differs is always sent."""
    columns = draw(COLUMNS)
    image = {name: draw(TEXTS) for name in columns}
    old = {name: draw(st.just(image[name]) | TEXTS) for name in columns}
    key = draw(st.lists(st.sampled_from(columns), min_size=1, unique=True))
    changed = {name for name in columns if image[name] != old[name]}
    return Update(key, image, old, changed | draw(st.sets(st.sampled_from(columns))))


@given(updates())
def test_keys_of_an_update(update: Update) -> None:
    keys = TableKeys(NAME, update.key)
    sent = {name: value for name, value in update.old.items() if name in update.sent}
    now, before = (row_key(NAME, [image[name] for name in update.key]) for image in (update.image, update.old))
    assert keys.key(msgspec.json.encode(update.image)) == now
    found = keys.keys(msgspec.json.encode(update.image), msgspec.Raw(msgspec.json.encode(sent)))
    assert found == (now, None if before == now else before)


@pytest.mark.parametrize("name", ["id", 'i"d', "i\\d"])
@pytest.mark.parametrize("image", [{"v": "1"}, {"KEY": None}, {"KEY": 1}, []])
def test_an_image_without_its_key_is_refused(image: object, name: str) -> None:
    text = msgspec.json.encode(image).replace(b'"KEY"', msgspec.json.encode(name))
    with pytest.raises(msgspec.DecodeError):
        TableKeys(NAME, [name]).key(text)
