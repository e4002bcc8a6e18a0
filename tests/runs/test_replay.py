"""Tests of `--model replay:FILE`: a run repeated without a model, and reports of differences.

Whole runs, because the second executes the log of the first.
"""

from pathlib import Path

import pytest

from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish, make_checkout

FILES = {"calc.py": "def add(a, b):\n    return a - b\n"}
FIX = bash("sed -i 's/a - b/a + b/' calc.py && cat calc.py")


@pytest.fixture
def recorded(command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path) -> Ended:
    checkout = make_checkout(tmp_path / "calc", FILES)
    model_endpoint.script(bash("cat calc.py"), FIX, finish("Make add add"))
    done = command_line.call_resolve(checkout)
    assert done.exit_code == 0, done.stderr
    return done


def replay(line: CommandLine, recorded: Ended, checkout: Path, *options: str) -> Ended:
    for name in ("LLM_MODEL", "LLM_API_KEY", "LLM_BASE_URL"):
        line.environment.pop(name, None)
    log = recorded.output / "events.jsonl"
    return line.call_resolve(checkout, "--model", f"replay:{log}", *options)


def test_another_repository_is_reported_and_not_hidden(
    command_line: CommandLine, recorded: Ended, tmp_path: Path
) -> None:
    """Whole runs, because the second executes what the first did, where the results differ."""
    other = make_checkout(tmp_path / "other", {"calc.py": "def add(a, b):\n    return 0\n"})
    done = replay(command_line, recorded, other)
    assert done.exit_code == 3
    fields = [d["field"] for d in done.outcome["divergences"]]
    assert fields[:2] == ["base", "content"]
    assert "differs from its recording" in done.stderr
    assert "return 0" in done.outcome["divergences"][1]["found"]


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "can't be read"), ("garbage\n", "line 1"), ("", "has no event in it")],
)
def test_a_recording_that_is_none_is_a_clear_error(
    command_line: CommandLine, tmp_path: Path, content: str | None, says: str
) -> None:
    checkout = make_checkout(tmp_path / "calc", FILES)
    log = tmp_path / "log.jsonl"
    if content is not None:
        log.write_text(content)
    done = command_line.call_resolve(checkout, "--model", f"replay:{log}")
    assert done.exit_code in (1, 2)
    assert says in done.stderr
    assert "Traceback" not in done.stderr
