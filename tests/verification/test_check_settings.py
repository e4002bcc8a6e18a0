"""Declared checks are read from the settings file, and all faults are named at once."""

import pytest

from resolver.config.settings import load_settings
from resolver.config.sources import repository_settings
from resolver.config.verification_settings import read_checks_setting
from resolver.errors import UsageError

FILE = b"""
checks:
  - name: unit
    command: pytest -q
    timeout: 300
    paths: [shop/**, tests/**]
    report: reports/*.xml
    report_format: junit
  - name: types
    command: mypy
    paths: "*.py"
"""


def test_declared_checks_are_read() -> None:
    unit, types = load_settings({}, {}, repository_settings(FILE)).checks
    assert (unit.name, unit.command, unit.timeout_seconds) == ("unit", "pytest -q", 300.0)
    assert unit.paths == ("shop/**", "tests/**")
    assert (unit.report, unit.report_format) == ("reports/*.xml", "junit")
    assert (types.paths, types.timeout_seconds, types.report) == (("*.py",), None, "")


def test_all_faults_are_named_at_once_with_suggestions() -> None:
    entries = [
        {"name": "unit", "comand": "pytest"},
        {"name": "types", "command": "mypy", "timeout": 0, "report_format": "junitt"},
        "pytest",
        {"name": "x", "command": "y", "report": "../../etc/passwd"},
    ]
    with pytest.raises(UsageError) as error:
        load_settings({}, {}, {"checks": entries})
    for words in (
        ".github/resolver.yml, checks: check 1 (unit): 'command' is missing",
        "check 1 (unit): 'comand' is not a property of a check (did you mean 'command'?)",
        "check 2 (types): 'timeout': must be more than 0",
        "check 2 (types): 'report_format' can't be 'junitt' (did you mean 'junit'?)",
        "check 3: it has no `name` and `command`",
        "check 4 (x): 'report': it is a path in the repository",
    ):
        assert words in error.value.what


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("pytest", "it is a list of checks"),
        ({"unit": "pytest"}, "it is a list of checks"),
        ([{"name": "a", "command": "x"}, {"name": "a", "command": "y"}], "given to several checks"),
        ([{"name": "a", "command": " "}], "it is empty"),
        ([{"name": "a\nb", "command": "x"}], "control character"),
        ([{"name": "a", "command": "x", "report": "/etc/passwd"}], "relative to its root"),
        ([{"name": str(n), "command": "x"} for n in range(51)], "at most 50 are allowed"),
        ("[", "not YAML"),
    ],
)
def test_wrong_values_are_refused(value: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_checks_setting(value)
