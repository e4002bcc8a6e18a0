"""Tests of the size of events: an edit costs its hunk, whatever the file's size."""

import pytest

from resolver.events.actions import CmdRun, FileEdit
from resolver.events.log import dump_line
from resolver.events.observations import CmdOutput, FileEditResult
from resolver.runtime.runtime import Runtime
from tests.parts.sandboxes import LOCAL, kinds

MOST = 10_000
"""Bytes of an edit's action and observation together beside lines of any length: of each line of
the hunk, and of each line shown, the start is there."""

LINES = "yes 'total = add(first, second)  # a line of this file' | head -c {size} > big.py"
ONE_LINE = "yes 'f(1);' | tr -d '\\n' | head -c {size} > big.py; echo >> big.py"
LONG_LINES = (
    "yes $(head -c 9000 /dev/zero | tr '\\0' '@') | head -c {size} > big.py; echo >> big.py"
)
CONTROLS = LONG_LINES.replace("@", "\\1")


def edit(sandbox: Runtime, make: str, size: int) -> int:
    """Return the size of the events of an edit of one line in the middle of the file."""
    half = make.format(size=size // 2)
    command = (
        f"{half}; cp big.py a; echo 'MIDDLE = 1' >> a; cat a big.py > big; mv big big.py; rm a"
    )
    made = sandbox.execute(CmdRun(command=command))
    assert isinstance(made, CmdOutput)
    assert made.exit_code == 0, made.content
    action = FileEdit(
        command="str_replace", path="big.py", old_str="MIDDLE = 1", new_str="MIDDLE = 2"
    )
    result = sandbox.execute(action)
    assert isinstance(result, FileEditResult), result
    assert len(result.old_hash) == len(result.new_hash) == 64
    return len(dump_line(action).encode()) + len(dump_line(result).encode())


@pytest.mark.parametrize("sandbox_kind", kinds(LOCAL))
@pytest.mark.parametrize("megabytes", [32])
def test_an_edit_of_one_line_makes_small_events(sandbox: Runtime, megabytes: int) -> None:
    assert edit(sandbox, LINES, megabytes * 1_000_000) < 3_000


@pytest.mark.parametrize("sandbox_kind", kinds(LOCAL))
@pytest.mark.parametrize("megabytes", [32])
@pytest.mark.parametrize("make", [ONE_LINE, CONTROLS])
def test_huge_lines_next_to_an_edit_are_truncated(
    sandbox: Runtime, make: str, megabytes: int
) -> None:
    assert edit(sandbox, make, megabytes * 1_000_000) <= MOST


@pytest.mark.parametrize("sandbox_kind", kinds(LOCAL))
def test_an_edit_inside_a_huge_line_makes_small_events(sandbox: Runtime) -> None:
    make = "(yes 'f(1);' | head -c 900000; echo 'MIDDLE = 1'; yes 'f(2);' | head -c 900000)"
    made = sandbox.execute(CmdRun(command=f"{make} | tr '\\n' ' ' > big.py; echo >> big.py"))
    assert isinstance(made, CmdOutput)
    action = FileEdit(
        command="str_replace", path="big.py", old_str="MIDDLE = 1", new_str="MIDDLE = 2"
    )
    result = sandbox.execute(action)
    assert isinstance(result, FileEditResult), result
    assert len(dump_line(action).encode()) + len(dump_line(result).encode()) <= MOST
