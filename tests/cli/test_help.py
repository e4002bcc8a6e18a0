"""The face of the command line: help, versions, errors."""

import subprocess
import sys
from pathlib import Path

import pytest

from resolver.cli import COMMANDS, run
from tests.parts.runs import RESOLVER

HEAVY = {"litellm", "docker", "github", "git", "pydantic", "fastapi", "dbos", "jinja2", "rich"}


def test_the_first_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from resolver.cli import run; run(['--help'], {}); "
        "print(*sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stderr.split())


def test_help_names_every_command_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"], {}) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert "5 refused" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"], {}) == 0
    assert f"resolver {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["resolve"], "no issue is given"),
        (["resolve", "x#1", "--runtime", "moon"], "'moon' is not one of"),
        (["trace", "missing.jsonl"], "missing.jsonl can't be read"),
        (["trace", str(Path(__file__))], "line 1: not a line of JSON"),
        (["serve"], "no model is set"),
    ],
)
def test_a_wrong_command_line_is_told_in_words(
    args: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(args, {}) in (1, 2)
    shown = capsys.readouterr()
    assert says in shown.err + shown.out
    assert "Traceback" not in shown.err


def test_the_installed_script_gives_the_exit_code() -> None:
    done = subprocess.run([RESOLVER, "nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert subprocess.run([RESOLVER, "--version"], capture_output=True, check=True).stdout


def test_an_error_can_not_control_the_terminal_or_the_runner(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(["trace", "\x1b[31mred\n::error::boom"], {})
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())
