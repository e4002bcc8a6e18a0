"""A manifest is compared without its dependencies and its version."""

import json

import pytest

from resolver.verification.manifests import may_change_tests

PYPROJECT = """\
[project]
name = "bill"
version = "1"
dependencies = ["click>=8"]
[project.optional-dependencies]
test = ["pytest"]
[tool.pytest.ini_options]
addopts = "-q"
"""
CARGO = '[package]\nname = "bill"\nversion = "0.1.0"\n\n[dependencies]\nserde = "1"\n'
PACKAGE = json.dumps(
    {"version": "1", "scripts": {"test": "jest"}, "dependencies": {"a": "^1"}}, indent=1
)
SETUP_CFG = """\
[metadata]
version = 1
[options]
install_requires =
  click
[tool:pytest]
x = 1
"""
GO = "module bill\n\ngo 1.21\n\nrequire (\n\ta.b/c v1.0.0\n)\n"


@pytest.mark.parametrize(
    ("path", "text", "old", "new"),
    [
        ("pyproject.toml", PYPROJECT, 'version = "1"', 'version = "2"'),
        ("pyproject.toml", PYPROJECT, '"click>=8"', '"click>=8.1", "attrs; python_version<\'4\'"'),
        ("pyproject.toml", PYPROJECT, '["pytest"]', '["pytest>=8", "hypothesis"]'),
        ("pyproject.toml", PYPROJECT, 'name = "bill"', 'name   =   "bill" # ours'),
        ("Cargo.toml", CARGO, 'serde = "1"', 'serde = { version = "1", features = ["derive"] }'),
        ("web/package.json", PACKAGE, '"^1"', '"^2", "b": "~1.0"'),
        ("package.json", PACKAGE, '"version": "1"', '"version": "2"'),
        ("setup.cfg", SETUP_CFG, "  click\n", "  click>=8\n  attrs\n"),
    ],
)
def test_versions_and_registry_dependencies_may_change(
    path: str, text: str, old: str, new: str
) -> None:
    assert old in text
    assert not may_change_tests(path, text.encode(), text.replace(old, new).encode())


@pytest.mark.parametrize(
    ("path", "text", "old", "new"),
    [
        ("pyproject.toml", PYPROJECT, '"-q"', '"-q -p bill"'),
        ("pyproject.toml", PYPROJECT, '["pytest"]', '["pytest @ file:./fake"]'),
        ("pyproject.toml", PYPROJECT, "[tool.pytest.ini_options]", "[tool.other]"),
        ("Cargo.toml", CARGO, "[dependencies]", "[lib]\ntest = false\n\n[dependencies]"),
        ("Cargo.toml", CARGO, 'serde = "1"', 'serde = { path = "./fake" }'),
        ("package.json", PACKAGE, '"jest"', '"true"'),
        ("package.json", PACKAGE, '"^1"', '"file:./fake"'),
        ("package.json", PACKAGE, '"^1"', '"npm:other@1"'),
        ("package.json", PACKAGE, '"version": "1"', '"version": "1", "overrides": {"a": "2"}'),
        ("package.json", PACKAGE, "{", "{{"),
        ("setup.cfg", SETUP_CFG, "x = 1", "x = 2"),
        ("go.mod", GO, "go 1.21", "go 1.22"),
        ("go.mod", GO, "go 1.21", "go 1.21\n\nreplace a.b/c => ./fake"),
        ("Makefile", "test:\n\tpytest\n", "pytest", "true"),
        ("pom.xml", "<a/>", "<a/>", "<a><skipTests/></a>"),
    ],
)
def test_anything_else_is_for_a_person(path: str, text: str, old: str, new: str) -> None:
    assert old in text
    assert may_change_tests(path, text.encode(), text.replace(old, new, 1).encode())


def test_a_new_manifest_may_configure_tests() -> None:
    assert may_change_tests("pyproject.toml", None, PYPROJECT.encode())
    assert may_change_tests("package.json", PACKAGE.encode(), None)
