"""The rules of the house that a build can check: import direction, purity, sizes, docstrings."""

import ast
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGES = ("consumer", "ordering", "sinks")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
LAYERS = (
    ["ordering"], ["ordering.rows"],
    ["sinks.rows"], ["sinks.bookkeeping", "sinks.compare", "sinks.ddl"],
    ["sinks.uri", "sinks.private_files", "sinks.server_error_hints", "sinks.wording", "sinks.steps"],
    ["sinks.known_tables"],
    ["sinks.target_session"], ["sinks.leadership", "sinks.ddl_execution"], ["sinks.dialect"],
    ["sinks.merged_rows", "sinks.unit_rows"], ["sinks.target"],
    ["sinks.mysql", "sinks.postgres", "sinks.sqlite"], ["sinks.iceberg", "sinks.tidb"], ["sinks.registry", "sinks"],
    ["consumer.native", "consumer.go_regex"],
    ["consumer.runtime", "consumer.redis", "consumer.kafka", "consumer.codec"],
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


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_of(path) for path in MODULES}


class Facts(NamedTuple):
    """What the rules ask of a file; its tree is not kept, for 800 of them make Python's garbage collection slow."""

    packages: frozenset[str]
    """First parts of the modules that it imports, wherever it does."""
    modules: frozenset[str]
    """All modules of ours that it imports."""
    lengths: tuple[tuple[str, int], ...]
    """Its functions, with their lines."""
    types: tuple[str, ...]
    undocumented: tuple[str, ...]
    patched_by_text: tuple[int, ...]


@cache
def facts_of(path: Path) -> Facts:
    return facts(ast.parse(path.read_text()))


def facts(tree: ast.Module) -> Facts:
    nodes = list(ast.walk(tree))
    imported = {name for node in nodes for name in imports(node)}
    public = [n for n in tree.body if isinstance(n, Function | ast.ClassDef) and not n.name.startswith("_")]
    return Facts(
        packages=frozenset(name.split(".")[0] for name in imported),
        modules=frozenset(name for name in map(module_in, imported) if name.split(".")[0] in (*PACKAGES, "tests")),
        lengths=tuple((f.name, (f.end_lineno or 0) - f.lineno + 1) for f in nodes if isinstance(f, Function)),
        types=tuple(n.name for n in public if isinstance(n, ast.ClassDef)),
        undocumented=(
            *(() if ast.get_docstring(tree) else ("the module",)),
            *(n.name for n in public if not ast.get_docstring(n)),
        ),
        patched_by_text=tuple(n.lineno for n in nodes if isinstance(n, ast.Call) and n.args and replaces_by_text(n)),
    )


def imports(node: ast.AST) -> Iterable[str]:
    """What a statement imports: `package.module`, or `package.module.name`."""
    if isinstance(node, ast.Import):
        return (alias.name for alias in node.names)
    return (f"{node.module}.{alias.name}" for alias in node.names) if isinstance(node, ast.ImportFrom) else ()


def module_in(name: str) -> str:
    """The module of what is imported under a name."""
    return name if name in NAMES or name in PACKAGES else name.rpartition(".")[0]


def replaces_by_text(call: ast.Call) -> bool:
    """Whether something is replaced that is found by a dotted path: no reader, type checker or rename finds it."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    first = call.args[0]
    return name == "patch" or (name == "setattr" and isinstance(first, ast.Constant) and isinstance(first.value, str))


def home_of(module: str) -> str:
    """The package of `LAYERS` that a module belongs to."""
    return max((home for home in FLOORS if f"{module}.".startswith(f"{home}.")), key=len)


def broken(rule: Callable[[Path], Iterable[object]], paths: Iterable[Path]) -> dict[str, list[object]]:
    """What breaks a rule, by file. One test a rule: a test for each of 800 files takes longer than to look at it."""
    return {name_of(path): found for path in paths if (found := list(rule(path)))}


def test_imports_point_downwards() -> None:
    assert broken(upward_imports, MODULES) == {}


def upward_imports(path: Path) -> Iterable[str]:
    here = home_of(module_of(path))
    homes = {home_of(name) if name in NAMES else name for name in facts_of(path).modules}
    return {home for home in homes if home != here and FLOORS.get(home, len(LAYERS)) >= FLOORS[here]}


def test_no_modules_import_each_other_in_a_circle() -> None:
    imports_of = {module_of(path): facts_of(path).modules & NAMES for path in MODULES}
    # a name that a package hands on is loaded when it is asked for
    TopologicalSorter({name: found for name, found in imports_of.items() if name != "consumer"}).prepare()


def test_spark_is_known_where_it_is_used() -> None:
    others = [path for path in MODULES if not f"{module_of(path)}.".startswith(tuple(f"{one}." for one in WITH_SPARK))]
    assert broken(lambda path: {"pyspark", "py4j"} & facts_of(path).packages, others) == {}


def test_no_folder_is_crowded() -> None:
    folders = Counter(path.parent for path in MODULES)
    assert {name_of(folder): count for folder, count in folders.items() if count > MOST_MODULES} == {}


def test_no_two_public_types_share_a_name() -> None:
    assert repeated(facts_of(path) for path in MODULES) == set()


def test_a_type_that_is_defined_twice_is_seen() -> None:
    texts = ("class Window: ...", "class Window: ...\nclass _Other: ...", "class _Other: ...")
    assert repeated(facts(ast.parse(text)) for text in texts) == {"Window"}


def repeated(files: Iterable[Facts]) -> set[str]:
    """Names of public classes that more than one module defines."""
    return {name for name, count in Counter(name for file in files for name in file.types).items() if count > 1}


def test_a_round_reads_as_the_list_of_its_steps() -> None:
    found = facts_of(ROOT / "consumer" / "pipeline" / "round.py")
    assert len(found.modules) <= 15
    assert sum(lines for name, lines in found.lengths if name in ("run", "_run")) <= 35


def test_ordering_is_pure() -> None:
    assert broken(lambda path: facts_of(path).packages - PURE, (ROOT / "ordering").rglob("*.py")) == {}


def test_modules_and_public_names_are_documented() -> None:
    assert broken(lambda path: facts_of(path).undocumented, MODULES) == {}


def test_files_are_small() -> None:
    lines = {name_of(path): len(path.read_text().splitlines()) for path in (*MODULES, *TESTS)}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_functions_are_small() -> None:
    assert broken(lambda path: [f for f in facts_of(path).lengths if f[1] > LONGEST_FUNCTION], MODULES + TESTS) == {}


def test_functions_are_short_on_the_whole() -> None:
    lengths = [lines for path in MODULES for _, lines in facts_of(path).lengths]
    assert median(lengths) <= 10
    assert quantiles(lengths, n=10)[-1] <= 30


def test_nothing_is_patched_by_its_path_as_text() -> None:
    assert broken(lambda path: facts_of(path).patched_by_text, TESTS) == {}


def test_a_patch_by_text_is_seen() -> None:
    tree = ast.parse("""
monkeypatch.setattr(module, "NAME", 1)
patch.object(Kind, "name", 2)
monkeypatch.setattr("consumer.module.NAME", 1)
patch("consumer.module.NAME", 2)
[mock.patch(name, value) for name, value in VALUES.items()]
monkeypatch.setitem(values, "name", 3)
""")
    assert facts(tree).patched_by_text == (4, 5, 6)


def test_nothing_is_left_open() -> None:
    marks = ("TODO", "FIXME", "XXX", "NotImplementedError", "pytest.skip", "mark.skip")
    files = [*MODULES, *(p for p in TESTS if p != Path(__file__))]
    assert [(name_of(p), mark) for p in files for mark in marks if mark in p.read_text()] == []
