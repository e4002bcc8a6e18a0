"""Says which files of a repository are tests, by their paths alone."""

import re
from pathlib import PurePosixPath

_TEST_FOLDERS = frozenset(
    {
        "tests",
        "spec",
        "specs",
        "e2e",
        "cypress",
        "testdata",
        "test-data",
        "test_data",
        "__tests__",
        "__mocks__",
        "__snapshots__",
        "__fixtures__",
        "fixtures",
        "snapshots",
        "androidtest",
        "integrationtest",
        "functionaltest",
        "testfixtures",
    }
)
"""Names of folders, in lower case, whose files are tests or used by tests only."""

_TEST_PARENTS = frozenset({"", "src", "lib"})
"""Folders in which a folder `test` of Python files holds tests.

Elsewhere it may be a part of the product, such as `django/test/client.py`.
"""

_TEST_NAME = re.compile(
    r"test_[^/]*\.pyi?|[^/]*_tests?\.pyi?|tests?\.py|conftest\.py"  # pytest, unittest, Django
    r"|(?:[^/]*[._-])?(?:test|tests|spec|e2e|cy)\.[cm]?[jt]sx?"  # jest, vitest, mocha, node --test
    r"|test-[^/]*\.[cm]?[jt]sx?"
    r"|[^/]*\.snap"
    r"|[^/]*_test\.go"
    r"|tests?\.rs|[^/]*_tests?\.rs"
    r"|(?:[A-Z][^/]*)?(?:Tests?|TestCase|Spec|IT)\.(?:java|kts?|scala|groovy|cs|fs|vb|swift|php)"
    r"|Test[A-Z][^/]*\.(?:java|kt|scala|groovy)"
    r"|[^/]*\.(?:bats|t)|test_[^/]*\.sh|[^/]*[_-]test\.sh"
    r"|(?:test_[^/]*|[^/]*_(?:test|tests|unittest|spec))\.(?:c|cc|cpp|cxx|m|mm|rb|exs|erl|dart)"
    r"|[^/]*_SUITE\.erl"
)
"""Matches names that test runners collect by default."""

_DOTNET_TESTS = re.compile(r"[^/]*\.(?:Unit|Integration|Functional)?Tests?")
"""Matches folders of .NET test projects, such as `Bill.Tests`."""

_MAX_PATH = 4_096
"""Number of characters of a path that are read."""


def is_test_file(path: str) -> bool:
    """Return True if the file is a test, or data or a helper that only tests use.

    Unit tests in the file that they test, as in Rust, can't be recognized by the path.
    """
    at = PurePosixPath(path[:_MAX_PATH])
    folders = at.parts[:-1]
    if _TEST_NAME.fullmatch(at.name):
        return True
    for number, folder in enumerate(folders):
        name = folder.lower()
        if name in _TEST_FOLDERS or _DOTNET_TESTS.fullmatch(folder):
            return True
        parent = folders[number - 1].lower() if number else ""
        if name == "test" and (at.suffix != ".py" or parent in _TEST_PARENTS):
            return True
    return folders[:1] == ("t",) and at.suffix in {".sh", ".t", ".pm", ".pl"}
