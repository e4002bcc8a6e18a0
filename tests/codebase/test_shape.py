"""Tests of the structural rules: sizes, imports inside functions, broad handlers."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("shape")  # one worker parses all modules

ROOT = Path(__file__).parents[2]
MODULES = sorted(p for p in (ROOT / "resolver").rglob("*.py") if "demo/repository" not in str(p))

LAZY_IMPORTS = {
    "litellm",
    "mcp",
    "mcp_types",
    "opentelemetry",
    "obstore",
}
"""The only packages that may be imported inside a function. The action execution server imports
there whatever few actions need, because each run waits for its start."""

BROAD_HANDLERS = {
    "resolver/controller/controller.py": 1,  # one step
    "resolver/runs/pipeline.py": 1,  # one delivery
    "resolver/runs/spans.py": 1,  # telemetry, which must not change how a run ended
    "resolver/config/background.py": 1,  # raised in the thread that asks for the result
    "resolver/mcp/servers.py": 1,  # one server, without which the run continues
    "resolver/entrypoints/webhook/background_threads.py": 1,  # one task, which is started again
    "resolver/entrypoints/webhook/worker.py": 1,  # one run, which then ends in its comment
    "resolver/events/stream.py": 1,  # one subscriber, which must not end the run
}
"""How many broad handlers each module may have."""


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements and handlers below a node, without a look into expressions."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for child in getattr(node, name, ()):
            yield child
            yield from statements_in(child)


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(statements_in(tree_of(path)))


def nodes(path: Path, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
    """Yield the statements and handlers of a module that are of these kinds."""
    return (n for n in nodes_of(path) if isinstance(n, kinds))


def length(node: ast.AST) -> int:
    return node.end_lineno - node.lineno + 1  # type: ignore[attr-defined]


def test_every_module_class_and_function_fits_its_size() -> None:
    limits = {ast.ClassDef: 250, ast.FunctionDef: 60, ast.AsyncFunctionDef: 60}
    long = [
        f"{name_of(path)}.{node.name}"  # type: ignore[attr-defined]
        for path in MODULES
        for node in nodes(path, *limits)
        if length(node) > limits[type(node)]  # type: ignore[index]
    ]
    assert long == [], "take a part with a name of its own out of it"
    modules = [name_of(path) for path in MODULES if len(path.read_text().splitlines()) > 600]
    assert modules == [], "move one of its concepts into a module of its own"


def imports_inside_functions(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and package of each import inside a function."""
    for function in nodes(path, ast.FunctionDef, ast.AsyncFunctionDef):
        for node in statements_in(function):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.lineno, (node.module or "").split(".")[0]


def test_only_the_listed_packages_are_imported_inside_functions() -> None:
    found = []
    for path in MODULES:
        if "resolver/sandbox" in str(path):
            continue
        for line, package in imports_inside_functions(path):
            if package not in LAZY_IMPORTS:
                found.append(f"{name_of(path)}, line {line}: {package}")
    assert found == [], "import it at the top of the module"


def test_broad_handlers_are_in_the_listed_modules_only() -> None:
    too_many = {}
    for path in MODULES:
        broad = [n for n in nodes(path, ast.ExceptHandler) if swallows_all(n)]
        if len(broad) > BROAD_HANDLERS.get(str(path.relative_to(ROOT)), 0):
            too_many[name_of(path)] = len(broad)
    assert too_many == {}, "catch what can happen, or add to BROAD_HANDLERS with the reason"


def swallows_all(node: ast.AST) -> bool:
    """Return True for a handler of all exceptions that does not end by raising what it caught."""
    assert isinstance(node, ast.ExceptHandler)
    name = node.type.id if isinstance(node.type, ast.Name) else ""
    last = node.body[-1]
    clean_up = isinstance(last, ast.Raise) and last.exc is None
    return (node.type is None or name in {"Exception", "BaseException"}) and not clean_up


def public_names(path: Path) -> Iterator[str]:
    definitions = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    names = (n.name for n in tree_of(path).body if isinstance(n, definitions))
    return (name for name in names if not name.startswith("_"))


def test_no_public_name_is_defined_twice() -> None:
    """`command` is the name that the command line imports from each of its modules."""
    places: dict[str, list[str]] = {}
    for path in MODULES:
        if "demo" in path.parts:
            continue
        for name in public_names(path):
            places.setdefault(name, []).append(name_of(path))
    assert {n: p for n, p in places.items() if len(p) > 1 and n != "command"} == {}, (
        "give one of them another name"
    )
