"""Tests of showing commands relative to the repository's root."""

import pytest

from resolver.trace.plain import relative_command

ROOT = "/tmp/resolver-a1b2/workspace"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (f"cd {ROOT} && pytest -q", "pytest -q"),
        (f"cd {ROOT}/ ; ls", "ls"),
        (f"cd '{ROOT}'\npytest", "pytest"),
        (f"cd {ROOT}/web && npm test", "cd web && npm test"),
        (f"cat {ROOT}/a.py {ROOT}/b/c.py", "cat a.py b/c.py"),
        (f"python {ROOT}/a.py && cd {ROOT} && ls", "python a.py && cd . && ls"),
        (f"cd {ROOT}", "cd ."),
        (f"ls {ROOT}-old {ROOT}2/a /x{ROOT}/a", f"ls {ROOT}-old {ROOT}2/a /x{ROOT}/a"),
        ("cd /tmp && ls", "cd /tmp && ls"),
        ("cd /workspace && ls /workspace/src", "ls src"),
    ],
)
def test_the_path_of_the_repository_is_removed(command: str, shown: str) -> None:
    assert relative_command(command, (ROOT, "/workspace")) == shown


def test_without_a_known_root_a_command_stays_as_it_is() -> None:
    for roots in ((), ("",), ("/",)):
        assert relative_command("cd /workspace && ls", roots) == "cd /workspace && ls"
