"""Tests of `--model replay:FILE` with a file that is no recording."""

from pathlib import Path

import pytest

from tests.parts.runs import CommandLine, make_checkout

FILES = {"calc.py": "def add(a, b):\n    return a - b\n"}


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
