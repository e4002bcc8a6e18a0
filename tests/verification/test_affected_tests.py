"""A check is narrowed to the tests that a change affects, where its runner takes files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.models.verification import ProjectCheck
from resolver.verification.affected_tests import affected_check
from resolver.verification.project_tree import ProjectTree

PYTHON = {
    "shop/bill.py": "", "shop/money.py": "", "shop/tax/__init__.py": "", "conftest.py": "",
    "tests/test_bill.py": "from shop.bill import total\n",
    "tests/test_money.py": "from shop import money, bill\n",
    "tests/test_tax.py": "import shop.tax\n",
    "tests/test_other.py": "import billing\n",
    "tests/helpers.py": "from shop import bill\n",
}  # fmt: skip
WEB = {"web/src/bill.ts": "", "web/src/bill.test.ts": "import './bill'", "web/src/a.test.ts": ""}
SCRIPTS = {
    "bill.js": "", "test/bill.test.js": "require('../bill')", "test/a.test.js": "require('./x')",
}  # fmt: skip
MOCHA = {"package.json": '{"scripts": {"test": "mocha", "all": "mocha test"}}', **SCRIPTS}
NODE = {
    "package.json": '{"scripts": {"test": "node --test", "all": "node --test \'test/*.js\'", '
    '"echo": "node --test && echo done"}}',
    **SCRIPTS,
}
GO = {
    "go.mod": "module example.com/shop\n", "bill/bill.go": "package bill",
    "main.go": "package main",
    "api/api.go": 'package api\nimport "example.com/shop/bill"\n', "tax/tax.go": "package tax",
}  # fmt: skip
RUST = {
    "Cargo.toml": "[workspace]", "a/Cargo.toml": "[package]\nname = 'aa'", "a/src/lib.rs": "",
    "b/Cargo.toml": "[package]\nname = 'bb'", "b/src/lib.rs": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("files", "runner", "command", "changed", "expected"),
    [
        (PYTHON, "pytest", "python -m pytest", ["shop/bill.py"],
         "python -m pytest tests/test_bill.py tests/test_money.py"),
        (PYTHON, "pytest", "pytest -q", ["shop/tax/__init__.py"], "pytest -q tests/test_tax.py"),
        (PYTHON, "pytest", "pytest", ["tests/test_other.py", "gone.py"],
         "pytest tests/test_other.py"),
        (PYTHON, "pytest", "pytest", ["conftest.py", "shop/bill.py"], None),
        (PYTHON, "pytest", "pytest -q tests/", ["shop/bill.py"],
         "pytest -q tests/test_bill.py tests/test_money.py"),
        (PYTHON, "pytest", "pytest tests/test_bill.py shop", ["shop/bill.py"],
         "pytest tests/test_bill.py"),
        (PYTHON, "pytest", "pytest shop", ["shop/bill.py"], None),
        (PYTHON, "pytest", "pytest tests/*.py", ["shop/bill.py"], None),
        (PYTHON, "pytest", "make test", ["shop/bill.py"], None),
        (PYTHON, "pytest", "pytest", ["README.md"], None),
        (PYTHON, "unittest", "python -m unittest", ["shop/bill.py"], None),
        (WEB, "jest", "cd web && npm test", ["web/src/bill.ts", "x.ts"],
         "cd web && npm test -- --findRelatedTests src/bill.ts"),
        (WEB, "vitest", "cd web && npx vitest run", ["web/src/bill.ts"],
         "cd web && npx vitest run src/bill.test.ts"),
        (MOCHA, "mocha", "npm test", ["bill.js"], "npm test -- test/bill.test.js"),
        (MOCHA, "mocha", "npx mocha", ["test/a.test.js"], "npx mocha test/a.test.js"),
        (MOCHA, "mocha", "npm run all", ["bill.js"], None),
        (NODE, "node", "npm test", ["bill.js"], "npm test -- test/bill.test.js"),
        (NODE, "node", "node --test", ["bill.js"], "node --test test/bill.test.js"),
        (NODE, "node", "npm run all", ["bill.js"], None),
        (NODE, "node", "npm run echo", ["bill.js"], None),
        (GO, "go", "go test ./...", ["bill/bill.go"], "go test ./api ./bill"),
        (GO, "go", "go test -race ./...", ["main.go"], "go test -race ."),
        (GO, "go", "go test ./...", ["README.md"], None),
        (RUST, "cargo", "cargo test --workspace", ["a/src/lib.rs", "README.md"],
         "cargo test -p aa"),
        (RUST, "cargo", "cargo test --workspace", ["a/src/lib.rs", "b/Cargo.toml"], None),
    ],
)  # fmt: skip
def test_only_the_affected_tests_are_run(
    files: dict[str, str], runner: str, command: str, changed: list[str], expected: str | None
) -> None:
    check = ProjectCheck(name="unit", command=command, runner=runner)
    result = affected_check(check, changed, ProjectTree.from_files(files))
    assert (result.check.command if result else None) == expected


def test_a_change_that_affects_very_many_tests_is_not_narrowed() -> None:
    files = {f"tests/test_{n}.py": "import bill" for n in range(150)}
    check = ProjectCheck(name="unit", command="pytest", runner="pytest")
    assert affected_check(check, ["bill.py"], ProjectTree.from_files(files)) is None


def test_a_path_is_never_an_option() -> None:
    check = ProjectCheck(name="unit", command="pytest", runner="pytest")
    tree = ProjectTree.from_files({"-x_test.py": "", "a b_test.py": ""})
    narrowed = affected_check(check, ["-x_test.py", "a b_test.py"], tree)
    assert narrowed is not None
    assert narrowed.check.command == "pytest ./-x_test.py 'a b_test.py'"


PATHS = st.lists(
    st.text(st.sampled_from("ab/._-é test.pygors\0"), min_size=1, max_size=15), max_size=6
)


@given(PATHS, PATHS, st.sampled_from(["pytest", "jest", "go", "cargo", "vitest"]))
def test_any_paths_give_a_result(changed: list[str], paths: list[str], runner: str) -> None:
    commands = {"go": "go test ./...", "cargo": "cargo test --workspace", "pytest": "pytest"}
    command = commands.get(runner, f"npx {runner}")
    check = ProjectCheck(name="unit", command=command, runner=runner)
    tree = ProjectTree.from_files(dict.fromkeys([*paths, "Cargo.toml"], "[package"))
    result = affected_check(check, changed, tree)
    assert result is None or result.check.command != command
