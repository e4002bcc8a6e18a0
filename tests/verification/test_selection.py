"""The checks for a change: the relevant ones, narrowed to the test files that it touches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.models.verification import ProjectCheck
from resolver.verification.checks import complete_check, discover_checks
from resolver.verification.runners import MAX_TESTS, narrow_to_files, narrow_to_tests
from resolver.verification.selection import relevant_checks, touched_tests
from tests.verification.scripted import tree_of


def test_checks_without_paths_are_always_relevant() -> None:
    always = ProjectCheck(name="a", command="a")
    web = ProjectCheck(name="b", command="b", paths=("web/**", "*.json"))
    assert relevant_checks((always, web), ["README.md"]) == (always,)
    assert relevant_checks((always, web), ["README.md", "web/a.ts"]) == (always, web)


PYTHON = {"pytest.ini": "", "shop/bill.py": "", "tests/test_bill.py": "", "tests/conftest.py": "",
          "tests/test_tax.py": "", "tests/data.json": ""}  # fmt: skip
API = {f"api/{path}": text for path, text in PYTHON.items()}
SCRIPT = {"web/package.json": '{"scripts": {"test": "vitest run"}}', "web/a.test.ts": ""}
NAMED = {"package.json": '{"scripts": {"test": "mocha test"}}', "test/a.test.js": ""}
GO = {"go.mod": "module x", "a_test.go": "", "bill/b_test.go": "", "bill/b.go": ""}


@pytest.mark.parametrize(
    ("files", "changed", "expected"),
    [
        (PYTHON, ["shop/bill.py", "tests/test_bill.py"], "python -m pytest tests/test_bill.py"),
        (PYTHON, ["tests/test_new.py"], None),
        (PYTHON, ["tests/conftest.py", "tests/data.json", "shop/bill.py"], None),
        (API, ["api/tests/test_bill.py"], "cd api && python -m pytest tests/test_bill.py"),
        (SCRIPT, ["web/a.test.ts"], "cd web && npm test -- a.test.ts"),
        (NAMED, ["test/a.test.js"], None),
        (GO, ["bill/b_test.go", "a_test.go"], "go test ./ ./bill"),
        (GO, ["bill/b.go"], None),
    ],
)
def test_only_the_test_files_that_the_change_touches_are_run_first(
    files: dict[str, str], changed: list[str], expected: str | None
) -> None:
    tree = tree_of(files)
    (check,) = discover_checks(tree)
    result = narrow_to_files(check, touched_tests(tree, changed))
    assert (result.command if result else None) == expected


@pytest.mark.parametrize(
    ("command", "whole", "narrowed"),
    [
        ("pytest -q {files}", "pytest -q", "pytest -q tests/test_bill.py"),
        ("pytest -q", "pytest -q", "pytest -q tests/test_bill.py"),
        ("pytest --cov shop", "pytest --cov shop", None),
        ("pytest -k 'not slow' tests", "pytest -k 'not slow' tests", None),
        ("pytest other", "pytest other", None),
        ("pytest tests | tee log", "pytest tests | tee log", None),
        ("cd api && pytest {files} --cov", "cd api && pytest --cov", None),
        ("./test.sh {files}", "./test.sh", "./test.sh tests/test_bill.py"),
        ("./test.sh", "./test.sh", None),
    ],
)
def test_files_in_a_declared_check_stand_for_those_that_the_change_touches(
    command: str, whole: str, narrowed: str | None
) -> None:
    tree = tree_of(PYTHON)
    check = complete_check(ProjectCheck(name="unit", command=command), tree)
    result = narrow_to_files(check, touched_tests(tree, ["tests/test_bill.py"]))
    assert (check.command, result.command if result else None) == (whole, narrowed)


@pytest.mark.parametrize(
    ("files", "ids", "expected"),
    [
        (PYTHON, ["tests/test_bill.py::test_a[b c]"],
         "python -m pytest 'tests/test_bill.py::test_a[b c]'"),
        (API, ["api/tests/test_bill.py::test_a"],
         "cd api && python -m pytest tests/test_bill.py::test_a"),
        (PYTHON, ["tests/test_bill.py"], None),
        (PYTHON, [], None),
        (PYTHON, [f"a.py::{n}" for n in range(MAX_TESTS + 1)], None),
        ({"test_a.py": "import unittest"}, ["test_a.A.test_x"],
         "python -m unittest test_a.A.test_x"),
        ({"test_a.py": "import unittest"}, ["setUpClass (test_a.A)"], None),
        (GO, ["x::TestA"], None),
    ],
)  # fmt: skip
def test_tests_are_named_where_the_runner_takes_their_ids(
    files: dict[str, str], ids: list[str], expected: str | None
) -> None:
    (check,) = discover_checks(tree_of(files))
    result = narrow_to_tests(check, ids)
    assert (result.command if result else None) == expected


def test_a_path_is_never_an_option() -> None:
    (check,) = discover_checks(tree_of(PYTHON))
    narrowed = narrow_to_files(check, ["-x_test.py", "a b_test.py"])
    assert narrowed is not None
    assert narrowed.command == "python -m pytest ./-x_test.py 'a b_test.py'"


PATHS = st.lists(
    st.text(st.sampled_from("ab/._-é test.pygors\0"), min_size=1, max_size=15), max_size=6
)


@given(PATHS, PATHS, st.sampled_from(["pytest.ini", "go.mod", "Cargo.toml", "package.json"]))
def test_any_paths_give_a_result(changed: list[str], paths: list[str], marker: str) -> None:
    tree = tree_of(dict.fromkeys([*paths, marker], '{"scripts": {"test": "jest"}}'))
    for check in discover_checks(tree):
        result = narrow_to_files(check, touched_tests(tree, changed))
        assert result is None or result.command.startswith(check.command.split()[0])
