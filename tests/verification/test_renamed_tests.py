"""The tests of a renamed file are the same tests."""

import pytest

from resolver.models.verification import CaseResult, CheckExecution
from resolver.verification.renamed_tests import RenamedTestFiles

FILES = {
    "tests/test_a.py": "tests/unit/test_b.py",
    "pkg/tests/test_c.py": "pkg/tests/test_d.py",
    "src/test/java/x/ATest.java": "src/test/java/x/BTest.java",
    "web/a.test.ts": "web/b.test.ts",
}


@pytest.mark.parametrize(
    ("before", "file", "after"),
    [
        ("tests/test_a.py::test_x[1]", "", "tests/unit/test_b.py::test_x[1]"),
        ("tests.test_a.T::x", "tests/test_a.py", "tests.unit.test_b.T::x"),
        ("tests.test_a.T.x", "", "tests.unit.test_b.T.x"),
        ("tests.test_c.T.x", "", "tests.test_d.T.x"),
        ("x.ATest::adds", "", "x.BTest::adds"),
        ("x.ATest$Inner::adds", "", "x.BTest$Inner::adds"),
        ("web/a.test.ts::total::adds", "web/a.test.ts", "web/b.test.ts::total::adds"),
        ("tests.test_ab.T.x", "", "tests.test_ab.T.x"),
        ("tests/test_other.py::test_a", "", "tests/test_other.py::test_a"),
    ],
)
def test_a_test_is_named_as_with_the_change(before: str, file: str, after: str) -> None:
    renamed = RenamedTestFiles(FILES)
    case = CaseResult(id=before, status="passed", file=file)
    [found] = renamed.as_with_change(CheckExecution(exit_code=0, seconds=1, cases=(case,))).cases
    assert (found.id, found.file) == (after, FILES.get(file, file))
    assert renamed.id_at_base(after) == before
