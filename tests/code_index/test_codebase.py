"""Tests of the graph and of the answers over small repositories in each language."""

import pytest

from resolver.code_index.codebase import MAX_WALK_STEPS
from tests.code_index.scenario import REPOSITORIES, codebase_of


def calls(files: dict[str, str], start: str, depth: int = 1) -> list[str]:
    """Return the rows of a walk along the calls of one definition."""
    text = codebase_of(files).explore([start], ["downstream"], depth, ["calls"])
    return [row.strip() for row in text.split("\n")[1:]]


@pytest.mark.parametrize("language", REPOSITORIES)
def test_a_call_into_another_file_is_followed_in_both_directions(language: str) -> None:
    code = codebase_of(REPOSITORIES[language])
    pay, total = ("Pay", "Total") if language == "go" else ("pay", "total")
    down, up = (
        code.explore([name], [direction], 1, ["calls"])
        for name, direction in ((pay, "downstream"), (total, "upstream"))
    )
    assert any("-> calls" in row and total in row for row in down.split("\n")), down
    assert any("<- calls" in row and pay in row for row in up.split("\n")), up


@pytest.mark.parametrize("language", ["python", "javascript", "typescript", "java", "c++", "ruby"])
def test_a_base_class_and_a_method_of_the_same_class_are_known(language: str) -> None:
    code = codebase_of(REPOSITORIES[language])
    walk = code.explore(["Cart", "Cart.pay"], ["downstream"], 1, ["inherits", "calls"])
    [base] = [row for row in walk.split("\n") if "inherits" in row]
    assert "::Base [" in base and "guessed" not in base
    assert any("Cart.check" in row and "guessed" not in row for row in walk.split("\n"))


@pytest.mark.parametrize(
    ("files", "start", "rows"),
    [
        ({"a.py": "def run(x):\n    x.save()\n", "b.py": "class B:\n    def save(self): ...\n"},
         "run", ["-> calls method b.py::B.save [2-2] (guessed)"]),
        ({f"m{n}.py": "def run(): ...\n" for n in range(9)} | {"a.py": "def go():\n    run()\n"},
         "go", []),
        ({"a.py": "def f():\n    g()\n\n\ndef g():\n    f()\n"}, "f",
         ["-> calls function a.py::g [5-6]", "-> calls function a.py::f [1-2] (see above)"]),
    ],
    ids=["a method of an unknown object", "a name with many definitions", "circular calls"],
)  # fmt: skip
def test_references_are_resolved_by_name(
    files: dict[str, str], start: str, rows: list[str]
) -> None:
    assert calls(files, start, 5) == rows


def test_folders_contain_files_and_the_root_contains_folders() -> None:
    code = codebase_of({"src/shop/a.py": "", "src/b.py": "", "c.py": ""})
    assert code.explore(["."], ["downstream"], 5, []).split("\n") == [
        "directory /, downstream",
        "  -> contains file c.py",
        "  -> contains directory src/",
        "    -> contains file src/b.py",
        "    -> contains directory src/shop/",
        "      -> contains file src/shop/a.py",
    ]


def test_a_redefinition_has_its_own_entry() -> None:
    text = "class A:\n    @property\n    def x(self): ...\n    @x.setter\n    def x(self, v): ...\n"
    answer = codebase_of({"a.py": text}).search(["a.py"], "")
    assert "- method a.py::A.x [2-3]" in answer and "- method a.py::A.x@4 [4-5]" in answer


def test_a_walk_is_bounded_in_rows_and_depth() -> None:
    body = "".join(f"def f{n}(): ...\n" for n in range(MAX_WALK_STEPS + 50))
    rows = codebase_of({"a.py": body}).explore(["a.py"], ["downstream"], 2, []).split("\n")
    assert len(rows) == MAX_WALK_STEPS + 2 and "more was left out" in rows[-1]
    chain = {"a.py": "".join(f"def f{n}():\n    f{n + 1}()\n" for n in range(9))}
    assert [len(calls(chain, "f0", depth)) for depth in (1, 2, 3)] == [1, 2, 3]


FILLER = "x = 1\n" * 100
FILES = REPOSITORIES["python"] | {
    "long.py": f"{FILLER}# the retryBudget of a shipment\n{FILLER}",
    "docs/use.md": "# Flurbing\n\nFlurb it.\n",
    "tests/a.py": "def total(): ...\n",
}


@pytest.mark.parametrize(
    ("term", "below", "found", "missing"),
    [
        ("total", "src", "## total\n- function src/shop/price.py::total [1-2]  def total(x):\n"
         "Passages with its words:\n", "tests/"),
        ("src/shop/cart.py::Cart.pay", "", "src/shop/cart.py, in src/shop/cart.py::Cart.pay:\n"
         "     5      def pay(self):\n     6          return", "     7"),
        ("src/shop/cart.py", "", "It contains:\n- class src/shop/cart.py::Cart [4-9]", "def total"),
        ("src/shop/cart.py:9", "", "in src/shop/cart.py::Cart.check:\n     8", "Cart.pay"),
        ("nowhere_at_all", "", "Nothing has this name, and its words occur nowhere.", "Passages"),
        ("retry budget", "", "long.py:\n    97  x = 1\n", "   106"),
        ("flurbing", "", "docs/use.md:\n     1  # Flurbing", "Similar"),
        ("totl", "", "Nothing has exactly this name. Similar:\n- function src/shop/price", "Cart"),
        ("CART.PAY", "", "- method src/shop/cart.py::Cart.pay [5-6]", "Similar"),
        ("src/shop/cart.py::pay", "", "- method src/shop/cart.py::Cart.pay [5-6]", "Similar"),
        ("/workspace/src/shop/cart.py:9", "", "in src/shop/cart.py::Cart.check:", "Nothing"),
        ("/w/src/shop/cart.py::Base", "", "    12  class Base:", "Nothing"),
        ("src/shop", "", "- file src/shop/cart.py\n- file src/shop/price.py", "Nothing"),
        ("/etc/passwd", "", "Nothing has this name", "It contains"),
        ("total", "/workspace/src/shop", "src/shop/price.py::total", "tests/"),
        ("total", "src/sh", "its words occur nowhere below src/sh", "price.py"),
        ("tests/a.py:900", "", "tests/a.py has no such lines.", "Nothing"),
    ],
)  # fmt: skip
def test_a_search_is_answered_with_definitions_code_and_passages(
    term: str, below: str, found: str, missing: str
) -> None:
    answer = codebase_of(FILES).search([term], below)
    assert found in answer, answer
    assert missing not in answer, answer


def test_an_unknown_start_of_a_walk_is_reported_with_what_may_be_meant() -> None:
    code = codebase_of({"a.py": "def f(): ...\n", "b.py": "def f(): ...\n"})
    ambiguous, unknown = code.explore(["f", "zz"], ["upstream"], 1, []).split("\n\n")
    expected = "The index has no f. Did you mean one of these?\n- a.py::f\n- b.py::f"
    assert ambiguous == expected
    assert unknown == "The index has no zz."
