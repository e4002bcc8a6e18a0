"""Changes that make checks pass without a fix are found; honest changes have no finding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.verification.affected_tests import unchanged_tests
from resolver.verification.project_tree import ProjectTree
from resolver.verification.statements import read_blocks
from resolver.verification.tampering import MAX_FINDINGS, find_tampering
from tests.verification.changes import CHEATING, HONEST, Change

PATHS = st.sampled_from(
    [
        "tests/test_a.py",
        "a.py",
        "conftest.py",
        "a.test.ts",
        "a_test.go",
        "src/lib.rs",
        "ATest.java",
        "test/a.bats",
        "tests/a.c",
        "pyproject.toml",
        "package.json",
        "Makefile",
        "spec/a_spec.rb",
        "tox.ini",
        ".github/workflows/ci.yml",
        "tests/data.json",
        "sitecustomize.py",
        "bin/pytest",
    ]
)
WORDS = st.sampled_from(
    [
        "def test_a():\n",
        "    assert x == 3\n",
        "class T:\n",
        '"',
        "'",
        '"""',
        "`",
        "/*",
        "*/",
        "#",
        "//",
        "it('a', () => {\n",
        "});\n",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "\\",
        "\n",
        "\x00",
        "\u2028",
        "@",
        "func TestA(t *testing.T) {\n",
        "#[test]\n",
        "fn a() {\n",
        "@Test\n",
        "if x == 42: return 17\n",
    ]
)
TEXTS = st.none() | st.text(max_size=300) | st.lists(WORDS, max_size=40).map("".join)


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_change_has_no_finding(name: str) -> None:
    assert find_tampering(HONEST[name]) == ()


@pytest.mark.parametrize("name", CHEATING)
def test_a_cheating_change_has_its_finding(name: str) -> None:
    kind, changes = CHEATING[name]
    found = find_tampering(changes)
    assert kind in {sign.kind for sign in found}, found


def test_the_value_that_an_unchanged_test_expects_is_hard_coded_too() -> None:
    code = "def add(a, b):\n    return a - b\n"
    change = ("bill.py", code, code.replace("return", "if a == 5:\n        return 12\n    return"))
    tree = ProjectTree.from_files(
        {
            "bill.py": code,
            "tests/test_bill.py": "import bill\n\n\ndef test_add():\n    assert bill.f(5) == 12\n",
        }
    )
    tests = unchanged_tests(["bill.py"], tree)
    assert [path for path, _ in tests] == ["tests/test_bill.py"]
    assert [sign.kind for sign in find_tampering([change], tests)] == ["hard_coded_result"]
    assert find_tampering([change]) == ()


@given(st.lists(st.tuples(PATHS, TEXTS, TEXTS), max_size=4))
def test_any_text_gives_a_result_that_does_not_depend_on_the_order(changes: list[Change]) -> None:
    found = find_tampering(changes)
    assert found == find_tampering(reversed(changes))
    assert len(found) <= MAX_FINDINGS


@given(PATHS, TEXTS)
def test_a_file_that_stays_the_same_has_no_finding(path: str, text: str | None) -> None:
    assert find_tampering([(path, text, text)]) == ()


@pytest.mark.parametrize(
    "piece", ["(", "/*", '"\\', "'''", "expect", "* *", "[1,", "a.", "if 1==", "@x("]
)
@pytest.mark.parametrize("path", ["tests/test_a.py", "tests/a.c", "a.test.js", "ATest.java"])
def test_long_hostile_text_is_read_to_its_end(path: str, piece: str) -> None:
    blocks = read_blocks(path, piece * 5_000 + "\nlast")
    texts = [mark.text for block in blocks for mark in (*block.marks, *block.statements)]
    assert sum(map(len, texts)) >= 1
    find_tampering([(path, piece * 5_000, piece * 4_000)])


def test_the_finding_says_where_and_what() -> None:
    _, changes = CHEATING["another value"]
    (found,) = find_tampering(changes)
    assert (found.path, found.line) == ("tests/test_bill.py", 15)
    assert found.detail == "assert result == 30 -> assert result == 20"
