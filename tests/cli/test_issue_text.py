"""Tests that the issue of a local checkout can be given as text."""

from pathlib import Path

import pytest

from tests.parts.runs import CommandLine


@pytest.mark.parametrize(
    "given",
    [("--text", "It is broken in the caf\udce9"), ("--issue", "caf\udce9.md")],
    ids=["text", "name"],
)
def test_what_is_not_utf_8_is_refused_before_anything_is_written(
    given: tuple[str, str], command_line: CommandLine, tmp_path: Path
) -> None:
    """The byte E9, as it is in Latin-1: Python has it as a lone surrogate."""
    output = tmp_path / "output"
    done = command_line.call("resolve", tmp_path, *given, "--output", output)
    assert done.exit_code == 2
    assert "is not UTF-8" in done.stderr and "->" in done.stderr
    assert not output.exists()


def test_a_folder_that_cannot_be_made_is_one_error(command_line: CommandLine) -> None:
    done = command_line.call("demo", "--folder", "/proc/x")
    assert done.exit_code == 1
    assert done.stderr.startswith("resolver: /proc/x: No such file") and "->" in done.stderr
