"""The second look at messages with one identity: what differs is refused, and so is a look that saw too little."""

import pytest

from consumer.evidence import check_contents
from consumer.explain import Content
from ordering.errors import InputError, SourceUnreachableError
from ordering.events import Position


def content(offset: int, identity: bytes = b"a", image: bytes = b"x") -> Content:
    return Content(identity, Position("t", 0, offset), "d.t, commitTs 1", image)


def test_equal_contents_are_duplicates() -> None:
    check_contents([content(0), content(1), content(2)], frozenset({1}))


def test_two_contents_are_refused_with_both_places() -> None:
    with pytest.raises(InputError) as caught:
        check_contents([content(3, image=b"y"), content(1), content(2)], frozenset({1}))
    assert caught.value.where == "topic=t partition=0 offset=1 and topic=t partition=0 offset=3"


@pytest.mark.parametrize(
    ("found", "suspects"),
    [([], {1}), ([content(0)], {1}), ([content(0), content(1), content(2, b"b")], {1, 2})],
    ids=["none", "one-of-two", "three-of-four"],
)
def test_a_look_that_found_less_than_the_first_proves_nothing(found: list[Content], suspects: set[int]) -> None:
    with pytest.raises(SourceUnreachableError, match="found again"):
        check_contents(found, frozenset(suspects))
