"""Says which files of a repository configure the tests, by their paths alone.

A file counts by its name and place, never by its content, so that a change can't choose how it is
classified except by choosing its names.
"""

import re
import sys
from collections.abc import Collection
from fnmatch import translate
from pathlib import PurePosixPath

from resolver.models.test_files import is_test_file

TEST_CONFIGURATION: dict[str, tuple[str, ...]] = {
    "Python": (
        "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini",
        "tox.toml", "noxfile.py", ".coveragerc", "nose.cfg", "nose2.cfg", "unittest.cfg",
        "sitecustomize.py", "usercustomize.py", "*.pth", "site-packages/", "venv/", ".venv/",
        ".tox/", ".nox/",
    ),
    "JavaScript": (
        "jest.*", "jest-*", "vitest.*", "karma.conf.*", "playwright.config.*", "cypress.json",
        "cypress.config.*", ".mocharc*", "mocha.opts", "ava.config.*", ".taprc", ".nycrc*",
        ".c8rc*", ".npmrc", ".yarnrc*", ".noderc", ".env", ".env.test", "node_modules/", ".yarn/",
    ),
    "Go": ("go.work",),
    "Rust": ("nextest.toml", ".cargo/"),
    "Java": ("junit-platform.properties", "testng.xml", "mvnw", "gradlew", ".mvn/", "wrapper/"),
    ".NET": ("*.runsettings", "xunit.runner.json"),
    "C and C++": ("CTestTestfile.cmake", "CTestCustom.cmake"),
    "Ruby": (".rspec",),
    "PHP": ("phpunit.xml", "phpunit.xml.dist"),
    "Perl": (".proverc",),
}  # fmt: skip
"""What is read or loaded by the test runners of a language and by nothing else: names of files, and
names of folders with a slash at the end."""

RUNNERS = frozenset(
    {
        "python", "python3", "pytest", "coverage", "tox", "nox", "node", "npm", "npx", "pnpm",
        "yarn", "bun", "jest", "vitest", "mocha", "ava", "tap", "c8", "nyc", "go", "gotestsum",
        "cargo", "cargo-nextest", "java", "mvn", "gradle", "dotnet", "ctest", "cmake", "make", "cc",
        "gcc", "sh", "bash", "env", "prove", "perl", "bats", "ruby", "rake", "rspec", "bundle",
        "php", "phpunit",
    }
)  # fmt: skip
"""Programs that run tests. A file of that name in a folder of programs may take their place."""

_RUNNER_MODULES = frozenset(
    {"pytest", "_pytest", "pluggy", "iniconfig", "coverage", "xdist", "pytest_cov", "nose2"}
)

_MANIFEST_NAME = re.compile(
    r"pyproject\.toml|setup\.(?:cfg|py)|package\.json|deno\.jsonc?|bunfig\.toml|vite\.config\.[^/]*"
    r"|Cargo\.toml|go\.mod|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?"
    r"|gradle\.properties|[^/]*\.(?:cs|fs|vb)proj|Directory\.Build\.(?:props|targets)"
    r"|composer\.json|Rakefile|Gemfile|(?:GNU)?[Mm]akefile|Makefile\.am|CMakeLists\.txt"
    r"|meson\.build|justfile|Taskfile\.ya?ml"
)
"""Matches names of files that configure test runners among other things."""

_ALL = [pattern for patterns in TEST_CONFIGURATION.values() for pattern in patterns]
_FOLDERS = frozenset(pattern[:-1] for pattern in _ALL if pattern.endswith("/"))
_NAMES = re.compile("|".join(translate(name) for name in _ALL if not name.endswith("/")))


def is_test_configuration(path: str) -> bool:
    """Return True if the file's only purpose is to configure, extend or replace a test runner.

    `conftest.py` is both a test file and configuration. See `is_project_manifest` for files of
    which only a part configures tests.
    """
    at = PurePosixPath(path)
    folders = at.parts[:-1]
    if _NAMES.match(at.name) or not _FOLDERS.isdisjoint(folders):
        return True
    return at.name in RUNNERS and folders[-1:] in {(), ("bin",), (".bin",)}


def belongs_to_tests(path: str, known: Collection[str]) -> bool:
    """Return True if the file is a test, or configures, extends or replaces what runs the tests.

    known: names in the root of the base commit: what is there already replaces nothing.
    """
    return is_test_file(path) or is_test_configuration(path) or _replaces_module(path, known)


def _replaces_module(path: str, known: Collection[str]) -> bool:
    """Return True if the file is imported in place of a module of Python or of a test runner.

    `python -m` imports from the repository's root first.
    """
    first = path.partition("/")[0]
    module = first.removesuffix(".py")
    is_python = path.endswith(".py") and first not in known
    return is_python and (module in _RUNNER_MODULES or module in sys.stdlib_module_names)


def is_project_manifest(path: str) -> bool:
    """Return True if the file configures builds or dependencies, and may configure tests too."""
    return _MANIFEST_NAME.fullmatch(PurePosixPath(path).name) is not None
