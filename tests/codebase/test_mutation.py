"""Tests of the list of modules that `make mutation` measures."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_measured_module_and_its_tests_exist() -> None:
    """The script itself runs rarely, so a renamed file would go unnoticed for long."""
    tree = ast.parse((ROOT / "scripts/mutation.py").read_text())
    [modules] = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODULES"
    ]
    assert len(modules) > 20, "those that decide what is allowed, and those of the pipeline"
    paths = [f"resolver/{module}" for module, *_ in modules.values()]
    paths += [path for _, *tests in modules.values() for path in tests]
    assert [path for path in paths if not (ROOT / path).exists()] == []
