"""The tests that a change adds or alters, by the text of their files."""

import pytest

from resolver.models.verification import CaseResult
from resolver.verification.altered_tests import find_altered_tests

OLD = """\
import shop

RATE = 2


def helper():
    return shop.total([])


class TestBill:
    def test_total(self):
        assert shop.total([1]) == 1


def test_rate():
    assert helper() == RATE
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # A new test, with the import that it needs: no other test is another one by that.
        ("import shop\n", "import shop\nfrom shop import tax\n\n\ndef test_new():\n    tax()\n",
         {"test_new"}),
        ("shop.total([1]) == 1", "shop.total([1]) == 2", {"test_total"}),
        ("def test_rate", "@mark\ndef test_rate", {"test_rate"}),
        ("def test_rate", "class TestNew:\n    x = 1\n\n    def test_new(self):\n        pass\n\n\n"
         "def double(x):\n    return x\n\n\ndef test_rate", {"test_new"}),
        # Code that tests share.
        ("def test_rate", "def setup_function():\n    pass\n\n\ndef test_rate",
         {"test_total", "test_rate"}),
        ("def test_rate", "@pytest.fixture(autouse=True)\ndef a():\n    pass\n\n\ndef test_rate",
         {"test_total", "test_rate"}),
        ("    def test_total", "    def helper(self):\n        pass\n\n    def test_total",
         {"test_total", "test_rate"}),
        ("RATE = 2", "RATE = 3", {"test_total", "test_rate"}),
        ("shop.total([])", "shop.total([0])", {"test_total", "test_rate"}),
        ("class TestBill:", "class TestBill(Base):", {"test_total", "test_rate"}),
        ("RATE = 2", "RATE = 2  # a comment", set()),
    ],
)  # fmt: skip
def test_tests_are_altered_by_their_own_text_or_by_what_they_share(
    old: str, new: str, expected: set[str]
) -> None:
    assert old in OLD
    altered = find_altered_tests([("tests/test_bill.py", OLD, OLD.replace(old, new))])
    ids = {
        "test_total": "tests/test_bill.py::TestBill::test_total[eur]",
        "test_rate": "tests/test_bill.py::test_rate",
        "test_new": "tests/test_bill.py::test_new",
    }
    found = {
        name
        for name, test in ids.items()
        if altered.contains(CaseResult(id=test, status="passed", file="tests/test_bill.py"))
    }
    assert found & (expected | {"test_total", "test_rate"}) == expected
    other = CaseResult(id="tests/test_other.py::test_total", status="passed")
    assert not altered.contains(other)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("tests/test_bill.py", None, "def test_total(): pass"),
        ("tests/data.csv", "1", "2"),
    ],
)
def test_every_test_of_a_new_file_or_of_one_that_is_no_code_counts(
    path: str, old: str | None, new: str
) -> None:
    altered = find_altered_tests([(path, old, new)])
    assert altered.contains(CaseResult(id=f"{path}::test_total", status="passed"))


def test_a_dotted_name_tells_the_file_of_a_test() -> None:
    altered = find_altered_tests(
        [("tests/test_bill.py", OLD, OLD.replace("[1]) == 1", "[1]) == 2"))]
    )
    names = ("tests.test_bill.TestBill.test_total", "tests.test_bill.test_rate", "a.b.test_total")
    found = [altered.contains(CaseResult(id=name, status="passed")) for name in names]
    assert found == [True, False, False]
