"""Declared checks are read from the settings file, and all faults are named at once."""

import pytest

from resolver.config.settings import load_settings
from resolver.config.sources import repository_settings
from resolver.config.verification_settings import MAX_SERVICES
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
    unit, types = load_settings({}, {}, repository_settings(FILE)).project_checks
    assert (unit.name, unit.command, unit.timeout_seconds) == ("unit", "pytest -q", 300.0)
    assert unit.paths == ("shop/**", "tests/**")
    assert (unit.report, unit.report_format) == ("reports/*.xml", "junit")
    assert (types.paths, types.timeout_seconds, types.report) == (("*.py",), None, None)


def with_services(services: object) -> list[dict[str, object]]:
    return [{"name": "a", "command": "x", "services": services}]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("pytest", "checks: must be a list"),
        ({"unit": "pytest"}, "checks: must be a list"),
        ([{"name": "a"}, "pytest"], "0.command: is missing; .*1: must be a mapping"),
        ([{"name": "a", "command": "x", "timeout": 0}], "0.timeout: must be greater than 0"),
        ([{"name": "a", "command": "x"}, {"name": "a", "command": "y"}], "given to several checks"),
        ([{"name": "a", "command": " "}], "it is empty"),
        ([{"name": "a\nb", "command": "x"}], "control character"),
        ([{"name": "a", "command": "x", "report": "/etc/passwd"}], "relative to its root"),
        ([{"name": "a", "command": "x", "report": "../../etc/passwd"}], "relative to its root"),
        ([{"name": str(n), "command": "x"} for n in range(51)], "at most 50"),
        (with_services({"db": {}}), "services.db.image: is missing"),
        (with_services({"db": 3}), "services.db: must be a mapping"),
        (with_services({"a b": "postgres"}), "must match pattern"),
        (with_services({"db": {"image": "x", "volumes": ["/etc"]}}), "volumes: is not known here"),
        (with_services({"db": {"image": "x", "ports": [99999]}}), "less than 65536"),
        (
            with_services({n: {"image": n, "ports": [1]} for n in "ab"}),
            "two services listen on one",
        ),
        (with_services({f"s{n}": "x" for n in range(MAX_SERVICES + 1)}), "at most 5"),
        (with_services(["db", "cache"]), "must be a mapping"),
    ],
)
def test_wrong_values_are_refused(value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load_settings({}, {}, {"checks": value})
