"""Whose windows count: exactly those that the target went through, whatever it was restored to in between."""

from hypothesis import given
from hypothesis import strategies as st

from consumer.redis.terms import MOST_TERMS, Terms, begun, is_within
from ordering.timestamps import CheckpointTs

Window = tuple[str, int]
"""By whom it was recorded, and where it ends."""


class Story:
    """A target that processes move on, of which backups are taken and put back."""

    def __init__(self) -> None:
        self.processes = 0
        self.checkpoint, self.saved = 0, Terms()
        self.past: frozenset[Window] = frozenset()
        self.recorded: set[Window] = set()
        self.backups = [(0, self.saved, self.past)]
        self.begin()

    def begin(self) -> None:
        self.processes += 1
        self.name = f"p{self.processes}"
        self.terms = begun(self.saved, CheckpointTs(self.checkpoint), self.name)

    def move(self, by: int) -> None:
        self.checkpoint += by
        self.saved = self.terms
        window = self.name, self.checkpoint
        self.past |= {window}
        self.recorded.add(window)

    def back_up(self, _: int) -> None:
        self.backups.append((self.checkpoint, self.saved, self.past))

    def restore(self, which: int) -> None:
        self.checkpoint, self.saved, self.past = self.backups[which % len(self.backups)]
        self.begin()

    def restart(self, _: int) -> None:
        self.begin()


STEPS = st.tuples(st.sampled_from(["move", "move", "move", "back_up", "restore", "restart"]), st.integers(1, 5))


@given(st.lists(STEPS, max_size=40))
def test_exactly_the_target_s_own_past_counts(steps: list[tuple[str, int]]) -> None:
    story = Story()
    for step, number in steps:
        getattr(story, step)(number)
    story.begin()
    assert {one for one in story.recorded if is_within(story.terms, *one)} == story.past


def test_without_terms_nothing_counts() -> None:
    assert not is_within((), "", 5)


def test_only_so_many_are_kept() -> None:
    terms: Terms = ()
    for checkpoint in range(1, 3 * MOST_TERMS):
        terms = begun(terms, CheckpointTs(checkpoint), f"of {checkpoint}")
    assert len(terms) == MOST_TERMS
    assert is_within(terms, f"of {2 * MOST_TERMS}", 2 * MOST_TERMS + 1)
    assert not is_within(terms, "of 1", 2)


def test_who_moved_nothing_leaves_nothing() -> None:
    terms: Terms = ()
    for number in range(100):
        terms = begun(terms, CheckpointTs(7), f"p{number}")
    assert [term.name for term in terms] == ["p99"]
