"""What reading tasks deliver to a bucket is complete and judged, or it is refused."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordering.errors import InputError, SourceUnreachableError, WorkerLostError
from ordering.rows.manifest import Manifest, check_answers, check_delivery

DIGESTS = st.lists(st.binary(min_size=1, max_size=2), min_size=1, max_size=6)
Delivery = tuple[list[Manifest], Counter[int], dict[int, bytes]]


def delivered(digests: list[bytes], blocks: list[int]) -> Delivery:
    """What comes to a bucket when all is well."""
    manifests = [Manifest(task, digest, blocks[task % len(blocks)]) for task, digest in enumerate(digests)]
    return manifests, Counter({m.task: m.blocks for m in manifests}), dict(enumerate(digests))


@given(DIGESTS, st.lists(st.integers(0, 3), min_size=1), st.randoms())
def test_all_that_was_judged_passes_in_any_order(digests: list[bytes], blocks: list[int], chance: object) -> None:
    manifests, came, accounts = delivered(digests, blocks)
    chance.shuffle(manifests)  # type: ignore[attr-defined]
    check_delivery(manifests, +came, accounts)


def missing(delivery: Delivery) -> None:
    delivery[0].pop()


def doubled(delivery: Delivery) -> None:
    delivery[0].append(delivery[0][0])


def foreign(delivery: Delivery) -> None:
    delivery[0].append(Manifest(99, b"", 0))


def read_else(delivery: Delivery) -> None:
    delivery[0][-1] = delivery[0][-1]._replace(digest=b"another")


def block_lost(delivery: Delivery) -> None:
    delivery[0][-1] = delivery[0][-1]._replace(blocks=delivery[0][-1].blocks + 1)


def block_doubled(delivery: Delivery) -> None:
    delivery[1][0] += 1


def blocks_of_nobody(delivery: Delivery) -> None:
    delivery[1][99] = 1


@pytest.mark.parametrize(
    "harm",
    [missing, doubled, foreign, read_else, block_lost, block_doubled, blocks_of_nobody],
    ids=lambda f: f.__name__,
)
@given(DIGESTS, st.lists(st.integers(0, 3), min_size=1))
def test_all_else_is_refused(harm: Callable[[Delivery], None], digests: list[bytes], blocks: list[int]) -> None:
    delivery = delivered(digests, blocks)
    harm(delivery)
    with pytest.raises(WorkerLostError):
        check_delivery(*delivery)


@pytest.mark.parametrize("error", [SourceUnreachableError("away"), InputError("gone")])
def test_what_a_reading_task_met_is_raised_as_it_is(error: SourceUnreachableError | InputError) -> None:
    manifests, came, accounts = delivered([b"a", b"b"], [1])
    manifests[1] = Manifest(1, b"", 0, error)
    with pytest.raises(type(error), match=error.fact):
        check_delivery(manifests, came, accounts)


@given(st.lists(st.integers(0, 6), max_size=8), st.integers(0, 5))
def test_each_bucket_answers_once(answers: list[int], parts: int) -> None:
    if sorted(answers) == list(range(1, parts + 1)):
        check_answers(answers, parts)
    else:
        with pytest.raises(WorkerLostError):
            check_answers(answers, parts)
