"""Tests of the size of events: an edit costs its hunk, whatever the file's size."""

import pytest

from resolver.events.actions import CmdRun, FileEdit
from resolver.events.log import dump_line
from resolver.events.observations import CmdOutput, FileEditResult
from resolver.runtime.runtime import Runtime
from tests.parts.sandboxes import LOCAL, kinds


@pytest.mark.parametrize("sandbox_kind", kinds(LOCAL))
def test_an_edit_of_one_line_makes_small_events(sandbox: Runtime) -> None:
    lines = "yes 'total = add(first, second)  # a line of this file' | head -c 16000000"
    made = sandbox.execute(
        CmdRun(command=f"{{ {lines}; echo; echo 'MIDDLE = 1'; {lines}; }} > big.py")
    )
    assert isinstance(made, CmdOutput) and made.exit_code == 0, made.content
    action = FileEdit(
        command="str_replace", path="big.py", old_str="MIDDLE = 1", new_str="MIDDLE = 2"
    )
    result = sandbox.execute(action)
    assert isinstance(result, FileEditResult), result
    assert len(result.old_hash) == len(result.new_hash) == 64
    assert len(dump_line(action).encode()) + len(dump_line(result).encode()) < 3_000
