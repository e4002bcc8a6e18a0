"""The face of the command line: help, versions, errors."""

import subprocess
import sys
from pathlib import Path

import pytest

from resolver.cli.main import COMMANDS, run
from resolver.errors import UsageError
from resolver.runs.common import parse_target

HEAVY = {"litellm", "docker", "github", "git", "pydantic", "fastapi", "dbos", "jinja2", "rich"}


def test_the_first_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from resolver.cli.main import run; run(['--help'], {}); "
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
        (["resolve", "x#1", "--runtime", "moon"], "'moon' is not one of"),
        (["trace", str(Path(__file__))], "line 1: not a line of JSON"),
        (["demo", "--folder", "/proc/x"], "resolver: /proc/x: No such file"),
        # The byte E9, as it is in Latin-1: Python has it as a lone surrogate.
        (["resolve", "/", "--text", "It is broken in the caf\udce9"], "is not UTF-8"),
        (["resolve", "/", "--issue", "caf\udce9.md"], "is not UTF-8"),
    ],
)
def test_a_wrong_command_line_is_reported_in_words(
    args: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(args, {}) in (1, 2)
    shown = capsys.readouterr()
    assert says in shown.err + shown.out
    assert "Traceback" not in shown.err


@pytest.mark.parametrize("args", [["resolve", "a/b#1"], ["action"], ["sweep", "a/b"], ["close"]])
def test_every_entry_point_warns_of_a_variable_that_sets_nothing(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run(args, {"RESOLVER_MAX_BUGDET": "3"})
    shown = capsys.readouterr()
    result = (
        "RESOLVER_MAX_BUGDET is not a setting and is ignored (did you mean RESOLVER_MAX_BUDGET?)"
    )
    start = "::warning title=Resolver::" if args == ["action"] else "resolver: warning: "
    lines = (shown.out if args == ["action"] else shown.err).splitlines()
    assert [line for line in lines if line.startswith(start)][:1] == [start + result]


@pytest.mark.attack
@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://github.com.evil.tld/octo/calc/issues/7", "is at github.com.evil.tld"),
        ("https://github.com@evil.tld/octo/calc/issues/7", "is at github.com@evil.tld"),
        ("https://github.com:8443/octo/calc/issues/7", "is at github.com:8443"),
        ("HTTPS://gitlab.com/octo/calc/-/issues/7", "is at gitlab.com"),
        ("https://github.com/octo/calc", "'https://github.com/octo/calc' is not an issue"),
        ("https://github.com", "'https://github.com' is not an issue"),
    ],
)
def test_a_url_that_is_no_issue_of_the_configured_github_is_refused(
    url: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The URL of an issue is at another host, such as `github.com.evil.tld`: refused."""
    assert run(["resolve", url], {"LLM_MODEL": "openai/x", "GITHUB_TOKEN": "ghp_of-the-tests"}) == 2
    shown = capsys.readouterr().err
    assert says in shown
    assert "the URL of an issue" in shown


@pytest.mark.parametrize(
    "url", ["https://GitHub.com/o/c/issues/7", "http://github.com/o/c/pull/7#x"]
)
def test_a_url_of_the_configured_github_names_its_issue(url: str) -> None:
    assert parse_target(url, "https://github.com") == ("o/c", 7)
    with pytest.raises(UsageError, match=r"is configured for ghe\.example"):
        parse_target(url, "https://ghe.example")


def test_an_error_can_not_control_the_terminal_or_the_runner(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(["trace", "\x1b[31mred\n::error::boom"], {})
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())


def test_a_reader_that_has_gone_is_no_traceback() -> None:
    command = [sys.executable, "-c", "from resolver.cli.main import main; main()", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 1
    assert b"Traceback" not in said
