"""The choice among cells: everything occurs in each run, and different runs see different cells."""

from itertools import product
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.cells import chosen, is_due, of_neighbours, turn

_FACTS = st.frozensets(st.integers(0, 9), min_size=1, max_size=4)


@given(st.dictionaries(st.text("abc", max_size=3), _FACTS, min_size=1), st.text(max_size=3))
def test_every_fact_occurs(cells: dict[str, frozenset[int]], seed: str) -> None:
    taken = chosen(cells, seed)
    assert set().union(*(cells[name] for name in taken)) == set().union(*cells.values())
    assert taken == chosen(dict(reversed(cells.items())), seed), "the order of collection decides"


def test_a_product_needs_no_more_cells_than_its_longest_side() -> None:
    cells = {f"{a}-{b}": {("a", a), ("b", b)} for a, b in product(range(20), range(3))}
    assert len(chosen(cells, "x")) == 20


def test_of_cells_without_facts_one_is_enough_and_each_comes_in_time() -> None:
    cells: dict[str, frozenset[int]] = dict.fromkeys("abc", frozenset())
    taken = [chosen(cells, str(seed)) for seed in range(60)]
    assert {len(one) for one in taken} == {1}
    assert set().union(*taken) == set(cells)


def test_in_time_all_cells_are_seen() -> None:
    cells = {f"{a}-{b}": {("a", a), ("b", b)} for a, b in product(range(4), range(3))}
    assert set().union(*(chosen(cells, str(seed)) for seed in range(60))) == set(cells)


def test_what_occurs_by_turns_by_itself_does_so_in_a_third_of_the_runs() -> None:
    due = [is_due(f"{seed} test[tidb]") for seed in range(300)]
    assert 70 < sum(due) < 130


def test_of_what_occurs_by_turns_a_third_occurs_and_all_of_it_in_time() -> None:
    found = {("script", number) for number in range(20)}
    turns = [turn(found, str(seed)) for seed in range(60)]
    assert {len(one) for one in turns} == {7}
    assert set().union(*turns) == found
    assert turn(set(), "x") == set()


def test_of_neighbours_one_runs_and_each_in_time() -> None:
    names = [f"{number:02}" for number in range(20)]
    for turns, taken in ((3, 7), (9, 3)):
        runs = [of_neighbours(names, turns, str(seed)) for seed in range(120)]
        assert {len(one) for one in runs} == {taken}
        assert set().union(*runs) == set(names)
        assert all(one & set(names[at : at + turns]) for one in runs for at in range(0, 20, turns))


def test_the_documentation_names_the_files_of_which_a_run_takes_a_part() -> None:
    here, told = Path(__file__).parent, (Path(__file__).parents[1] / "docs/development/testing.md").read_text()
    marked = {path.name for path in here.rglob("test_*.py") if "@pytest.mark.by_turns" in path.read_text()}
    assert sorted(name for name in marked - {Path(__file__).name} if f"`{name}`" not in told) == []
