"""The rules of the house that a build can check: import direction, purity, sizes, docstrings."""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("consumer", "ordering", "sinks")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
ALLOWED = {"consumer": {"consumer", "ordering", "sinks"}, "sinks": {"sinks", "ordering"}, "ordering": {"ordering"}}
PURE = {
    "__future__", "bisect", "collections", "dataclasses", "datetime", "enum", "functools", "heapq", "itertools",
    "typing", "msgspec", "xxhash", "ordering",
}  # fmt: skip
MOST_LINES = 400
LONGEST_FUNCTION = 70
Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


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


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_downwards(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    ours = {name for name in imports(path) if name in PACKAGES or name == "tests"}
    assert ours <= ALLOWED[package]


@pytest.mark.parametrize("path", sorted((ROOT / "ordering").glob("*.py")), ids=name_of)
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
