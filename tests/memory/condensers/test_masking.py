"""Tests of masking: actions stay, outputs are replaced."""

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.memory.condensers.rules import ObservationMasking
from resolver.memory.conversation import ConversationMemory
from tests.memory.condensers.scenarios import condense, filled
from tests.memory.logs import started
from tests.memory.test_conversation import assert_pairs_are_complete

PICTURE = "data:image/png;base64,AAAA"


def test_old_outputs_are_masked_and_actions_stay() -> None:
    log = filled(30)
    condensation = condense(log, ObservationMasking(keep_last=5), 7_500)
    assert condensation is not None and condensation.forgotten == ()
    assert len(condensation.masked) == 25
    messages = ConversationMemory().messages(log.state)
    assert_pairs_are_complete(messages)
    shown = str(messages)
    assert "say 3'" in shown
    assert "x" * 700 not in str(messages[:-10]) and "x" * 1000 in str(messages[-10:])
    assert "[exit code 1]" in str(messages[5])
    assert "left out to save space; run the command again to see it" in shown


def test_a_masked_output_says_how_to_get_it_again() -> None:
    log = started()
    long = "line of text\n" * 200
    tail = "FAILED tests/test_a.py::test_x - assert 1\n2 failed, 7 passed in 1s\n"
    failed = o.CmdOutput(content=long + tail, exit_code=1, cwd="/w", output_file="/tmp/out-1")
    log.turn(a.CmdRun(command="pytest"), failed)
    log.turn(a.FileRead(path="a.py"), o.FileReadResult(path="a.py", content=long))
    log.turn(a.IPythonRunCell(code="f()"), o.IPythonOutput(content=long, error=True))
    log.turn(a.CmdRun(command="last"), o.CmdOutput(content=long, exit_code=0))
    condense(log, ObservationMasking(keep_last=1), 2_000)
    results = [
        m["content"] for m in ConversationMemory().messages(log.state) if m["role"] == "tool"
    ]
    assert "FAILED tests/test_a.py::test_x - assert 1\n2 failed, 7 passed in 1s\n" in results[0]
    assert "all of it is in /tmp/out-1]\n[exit code 1, in /w]" in results[0]
    assert "2600 characters of a.py left out" in results[1] and "view it again" in results[1]
    assert "[the cell raised an error]" in results[2]
    assert all(len(result) < 1000 for result in results[:3])
    assert "line of text\nline of text" in results[3]
