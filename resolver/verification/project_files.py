"""Classifies a repository's files by path: configuration of test runners, manifests.

Only the path is judged, never the content, so that a change can't choose how it is classified
except by choosing its names, which are compared too.
"""

import re
from pathlib import PurePosixPath

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

_MAX_PATH = 4_096
"""Number of characters of a path that are read."""


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
