"""Classifies a repository's files by path: tests, configuration of test runners, manifests.

Only the path is judged, never the content, so that a change can't choose how it is classified
except by choosing its names, which are compared too.
"""

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

_CONFIGURATION_NAME = re.compile(
    r"conftest\.py|\.?pytest\.(?:ini|toml)|tox\.(?:ini|toml)|noxfile\.py|\.coveragerc|nose2?\.cfg"
    r"|unittest\.cfg|(?:site|user)customize\.py|[^/]*\.pth"
    r"|jest(?:[.-][^/]*)?\.(?:[cm]?[jt]s|json)|vitest\.[^/]*\.[cm]?[jt]s|vitest\.workspace\.[^/]*"
    r"|karma\.conf\.[^/]*|playwright\.config\.[^/]*|cypress\.(?:config\.[^/]*|json)"
    r"|\.mocharc(?:\.[^/]*)?|mocha\.opts|ava\.config\.[^/]*|\.taprc|\.nycrc(?:\.[^/]*)?"
    r"|\.c8rc(?:\.[^/]*)?|nextest\.toml"
    r"|phpunit\.xml(?:\.dist)?|\.rspec|[^/]*\.runsettings|xunit\.runner\.json"
    r"|junit-platform\.properties|testng\.xml|CTestTestfile\.cmake|CTestCustom\.cmake"
    r"|codecov\.ya?ml|\.codecov\.ya?ml"
)
"""Matches names of files whose only purpose is to configure or extend a test runner."""

_MANIFEST_NAME = re.compile(
    r"pyproject\.toml|setup\.(?:cfg|py)|package\.json|deno\.jsonc?|bunfig\.toml|vite\.config\.[^/]*"
    r"|Cargo\.toml|go\.(?:mod|work)|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?"
    r"|gradle\.properties|[^/]*\.(?:cs|fs|vb)proj|Directory\.Build\.(?:props|targets)"
    r"|composer\.json|Rakefile|Gemfile|(?:GNU)?[Mm]akefile|Makefile\.am|CMakeLists\.txt"
    r"|meson\.build|justfile|Taskfile\.ya?ml"
)
"""Matches names of files that configure test runners among other things."""

_WORKFLOW_FILES = re.compile(
    r"\.github/(?:workflows|actions)/.*|\.gitlab-ci\.yml|\.gitlab/ci/.*|\.circleci/.*"
    r"|\.travis\.yml|azure-pipelines\.ya?ml|\.azure-pipelines/.*|appveyor\.yml|\.cirrus\.yml"
    r"|Jenkinsfile|\.buildkite/.*|bitbucket-pipelines\.yml|\.woodpecker(?:/.*|\.ya?ml)"
)
"""Matches the paths of continuous integration's configuration."""

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


def is_test_configuration(path: str) -> bool:
    """Return True if the file's only purpose is to configure, extend or replace a test runner.

    `conftest.py` is both a test file and configuration. See `is_project_manifest` for files of
    which only a part configures tests, and `is_workflow_file` for continuous integration.
    """
    name = PurePosixPath(path[:_MAX_PATH]).name
    return _CONFIGURATION_NAME.fullmatch(name) is not None or path == ".github/resolver.yml"


def is_project_manifest(path: str) -> bool:
    """Return True if the file configures builds or dependencies, and may configure tests too."""
    return _MANIFEST_NAME.fullmatch(PurePosixPath(path[:_MAX_PATH]).name) is not None


def is_workflow_file(path: str) -> bool:
    """Return True if the file configures continuous integration."""
    return _WORKFLOW_FILES.fullmatch(path[:_MAX_PATH]) is not None
