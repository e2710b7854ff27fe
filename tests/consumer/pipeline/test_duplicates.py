"""The second look at messages with one identity: what differs is refused, and so is a look that saw too little."""

import pytest

from consumer.pipeline.duplicates import check_contents
from consumer.tasks.second_look import Content
from ordering.errors import InputError, SourceUnreachableError
from ordering.events import Position


def content(offset: int, suspect: int = 1, image: bytes = b"x", spelling: int | None = None) -> Content:
    place = Position("t", 0, offset)
    return Content(bytes([suspect]), place, "d.t, commitTs 1", image, suspect, offset if spelling is None else spelling)


def test_equal_contents_are_duplicates() -> None:
    check_contents([content(0), content(1), content(2)], frozenset({1}))


def test_two_contents_are_refused_with_both_places() -> None:
    with pytest.raises(InputError) as caught:
        check_contents([content(3, image=b"y"), content(1), content(2)], frozenset({1}))
    assert caught.value.where == "topic=t partition=0 offset=1 and topic=t partition=0 offset=3"


LACKING = {
    "none": ([], {1}),
    "one-of-two": ([content(0)], {1}),
    "three-of-four": ([content(0), content(1), content(2, 2)], {1, 2}),
    "four-of-one": ([content(0), content(1), content(2), content(3)], {1, 2}),
    "the-differing-one-is-gone": ([content(0, spelling=7), content(1, spelling=7)], {1}),
}


@pytest.mark.parametrize(("found", "suspects"), LACKING.values(), ids=LACKING)
def test_a_look_that_found_less_than_the_first_proves_nothing(found: list[Content], suspects: set[int]) -> None:
    with pytest.raises(SourceUnreachableError, match="found again"):
        check_contents(found, frozenset(suspects))
