"""The rules of the house that a build can check: import direction, purity, sizes, docstrings."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median, quantiles

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("consumer", "ordering", "sinks")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
LAYERS = (
    ["ordering"], ["ordering.rows"],
    ["sinks.rows"], ["sinks.bookkeeping", "sinks.compare", "sinks.ddl"],
    ["sinks.uri", "sinks.private_files", "sinks.advice", "sinks.wording", "sinks.steps"],
    ["sinks.known_tables"],
    ["sinks.target_session"], ["sinks.leadership", "sinks.ddl_execution"], ["sinks.dialect"], ["sinks.target"],
    ["sinks.mysql", "sinks.postgres", "sinks.sqlite"], ["sinks.iceberg", "sinks.tidb"], ["sinks.registry", "sinks"],
    ["consumer.runtime", "consumer.redis", "consumer.kafka", "consumer.codec", "consumer.native"],
    ["consumer.serve.page", "consumer.tuning"], ["consumer.formats"],
    ["consumer.embedded", "consumer.filters", "consumer.large_messages"], ["consumer.storage"],
    ["consumer.config"], ["consumer.wiring", "consumer.tasks"], ["consumer.source", "consumer.ddl"],
    ["consumer.quarantine"], ["consumer.pipeline", "consumer.spark"],
    ["consumer.library", "consumer.run", "consumer.spark_source", "consumer.verify"],
    ["consumer"], ["consumer.proof"], ["consumer.operate"],
    ["consumer.load", "consumer.serve", "consumer.demo"], ["consumer.cli"],
    ["consumer.reference"],
)  # fmt: skip
"""From the ground up. A module imports its own package and those of lower layers, never a neighbour's."""
FLOORS = {package: floor for floor, packages in enumerate(LAYERS) for package in packages}
WITH_SPARK = {
    "consumer.spark", "consumer.library", "consumer.spark_source", "consumer.tasks.write", "consumer.verify",
    "consumer.run",
}  # fmt: skip
MOST_MODULES = 15
PURE = {
    "__future__", "bisect", "collections", "dataclasses", "datetime", "enum", "functools", "heapq", "itertools",
    "typing", "msgspec", "xxhash", "ordering",
}  # fmt: skip
MOST_LINES = 400
LONGEST_FUNCTION = 70
Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> Iterator[str]:
    """First parts of the modules that a file imports, wherever it does."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]


def functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, Function))


def length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_of(path) for path in MODULES}


def modules_imported(path: Path) -> set[str]:
    """All modules of ours that a file imports, wherever it does."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(
                one if one in NAMES else node.module for one in (f"{node.module}.{a.name}" for a in node.names)
            )
    return {name for name in found if name.split(".")[0] in (*PACKAGES, "tests")}


def home_of(module: str) -> str:
    """The package of `LAYERS` that a module belongs to."""
    return max((home for home in FLOORS if f"{module}.".startswith(f"{home}.")), key=len)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_downwards(path: Path) -> None:
    here = home_of(module_of(path))
    homes = {home_of(name) if name in NAMES else name for name in modules_imported(path)}
    assert {home for home in homes if home != here and FLOORS.get(home, len(LAYERS)) >= FLOORS[here]} == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    imports_of = {module_of(path): modules_imported(path) & NAMES for path in MODULES}
    # a name that a package hands on is loaded when it is asked for
    TopologicalSorter({name: found for name, found in imports_of.items() if name != "consumer"}).prepare()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_spark_is_known_where_it_is_used(path: Path) -> None:
    name = module_of(path)
    if {"pyspark", "py4j"} & set(imports(path)):
        assert any(f"{name}.".startswith(f"{one}.") for one in WITH_SPARK)


def test_no_folder_is_crowded() -> None:
    folders = Counter(path.parent for path in MODULES)
    assert {name_of(folder): count for folder, count in folders.items() if count > MOST_MODULES} == {}


def test_no_two_public_types_share_a_name() -> None:
    assert repeated(tree_of(path) for path in MODULES) == set()


def test_a_type_that_is_defined_twice_is_seen() -> None:
    trees = [
        ast.parse("class Window: ..."),
        ast.parse("class Window: ...\nclass _Other: ..."),
        ast.parse("class _Other: ..."),
    ]
    assert repeated(trees) == {"Window"}


def repeated(trees: Iterable[ast.Module]) -> set[str]:
    """Names of public classes that more than one module defines."""
    names = [node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    return {name for name, count in Counter(names).items() if count > 1 and not name.startswith("_")}


def test_a_round_reads_as_the_list_of_its_steps() -> None:
    path = ROOT / "consumer" / "pipeline" / "round.py"
    assert len(modules_imported(path)) <= 15
    run = [f for f in functions(path) if f.name in ("run", "_run")]
    assert sum(map(length, run)) <= 35


@pytest.mark.parametrize("path", sorted((ROOT / "ordering").rglob("*.py")), ids=name_of)
def test_ordering_is_pure(path: Path) -> None:
    assert set(imports(path)) <= PURE


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_and_public_names_are_documented(path: Path) -> None:
    tree = tree_of(path)
    assert ast.get_docstring(tree), "module docstring"
    public = [n for n in tree.body if isinstance(n, Function | ast.ClassDef) and not n.name.startswith("_")]
    assert [n.name for n in public if not ast.get_docstring(n)] == []


@pytest.mark.parametrize("path", [*MODULES, *sorted((ROOT / "tests").rglob("*.py"))], ids=name_of)
def test_files_and_functions_are_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES
    assert [f.name for f in functions(path) if length(f) > LONGEST_FUNCTION] == []


def test_functions_are_short_on_the_whole() -> None:
    lengths = [length(f) for path in MODULES for f in functions(path)]
    assert median(lengths) <= 10
    assert quantiles(lengths, n=10)[-1] <= 30


def test_nothing_is_left_open() -> None:
    marks = ("TODO", "FIXME", "XXX", "NotImplementedError", "pytest.skip", "mark.skip")
    files = [*MODULES, *(p for p in (ROOT / "tests").rglob("*.py") if p != Path(__file__))]
    assert [(name_of(p), mark) for p in files for mark in marks if mark in p.read_text()] == []
