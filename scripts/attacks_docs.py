"""Prints docs/reference/attacks.md from the docstrings of the tests that attack Resolver. A test
compares the file with it.

These are the tests in `tests/attacks` and those marked `attack`. Each says in its docstring what is
tried and what holds.
"""

import ast
from functools import cache
from itertools import groupby
from pathlib import Path

from scripts.settings_docs import origin_note

ROOT = Path(__file__).parents[1]

HEAD = """# Attacks that the tests try

Each line is a test: what is tried, and what holds. In the tests of whole runs, a scripted model
does exactly what the attacker wants, so that no result depends on the good sense of a model. To run
all of them:

    .venv/bin/pytest -m "attack and not deep"

[THREATS.md](../../THREATS.md) has the threats that these tests belong to, and what is not defended.
"""

FOLDER = "tests/attacks/"
MARKER = "pytest.mark.attack"


def attack_modules() -> list[str]:
    """Return the modules with tests of attacks, sorted by their paths."""
    paths = ((str(path.relative_to(ROOT)), path) for path in (ROOT / "tests").rglob("test_*.py"))
    return sorted(
        name
        for name, path in paths
        if name.startswith(FOLDER) or f"@{MARKER}\n" in path.read_text()
    )


@cache
def attack_tests(path: str) -> dict[str, str]:
    """Return what each test of an attack in a module tries, by its name."""
    found = {}
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            is_marked = any(ast.unparse(decorator) == MARKER for decorator in node.decorator_list)
            if is_marked or path.startswith(FOLDER):
                found[node.name] = " ".join((ast.get_docstring(node) or "").split())
    return found


def attacks_page() -> str:
    """Return the content of docs/reference/attacks.md, with a table for each package of tests."""
    parts = [HEAD]
    for package, modules in groupby(attack_modules(), lambda module: module.split("/")[1]):
        rows = [
            f"| {_cell(text)} | [{test}](../../{module}) |"
            for module in modules
            for test, text in attack_tests(module).items()
        ]
        heading = [f"## {package}", "", "| What is tried, and what holds | Test |", "|---|---|"]
        parts.append("\n".join([*heading, *rows, ""]))
    return "\n".join(parts) + origin_note("the docstrings of the tests")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(attacks_page(), end="")
