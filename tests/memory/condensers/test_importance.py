"""Tests of the default condenser, whose summary keeps the facts of the log."""

from resolver.errors import ModelError
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.registry import LogCondenser
from resolver.memory.condensers.rules import CHANGED, ORDINARY, Importance, importance
from resolver.memory.condensers.summaries import FreeTextNoteWriter
from resolver.memory.condensers.view import AgentLog as Shown
from resolver.memory.condensers.view import SizeBound
from resolver.memory.conversation import ConversationMemory
from resolver.models.run import PlanItem
from tests.memory.condensers.scenarios import (
    SMALL,
    Noting,
    asker,
    condense,
    filled,
    of,
    sent_text,
    warnings,
)
from tests.memory.logs import Log, started, task
from tests.memory.test_conversation import assert_pairs_are_complete


def ordinary(log: Log, count: int, size: int = 900) -> None:
    for number in range(count):
        text = f"found {number} " + "x" * size
        log.turn(a.CmdRun(command=f"grep {number}"), o.CmdOutput(content=text, exit_code=0))


def worked() -> Log:
    """A run in which things were decided, changed and checked, and much was looked at since."""
    log = started()
    plan = (PlanItem(title="find it", status="done"), PlanItem(title="write the note"))
    log.turn(a.PlanUpdate(items=plan), o.PlanUpdated(content="noted"))
    edit = a.FileEdit(command="str_replace", path="src/sum.py", old_str="a", new_str="b")
    hunk = o.FileEditResult(path="src/sum.py", diff="@@ -1 +1 @@\n-a - b\n+a + b\n", content="ok")
    log.turn(edit, hunk, text="Subtraction is the cause.")
    failed = "FAILED tests/test_sum.py::test_two - assert 0 == 4\n1 failed, 3 passed in 0.1s"
    log.turn(a.CmdRun(command="cd x && pytest -q"), o.CmdOutput(content=failed, exit_code=1))
    made = o.ChangedPaths(paths=("conf.ini",), count=1, differing=2)
    log.turn(a.CmdRun(command="make conf"), o.CmdOutput(exit_code=0, changed=made))
    log.turn(a.Think(content="the cache must be emptied as well"), o.Null())
    log.turn(a.Message(content="Which table?", wait_for_response=True), None)
    log.add(task("The one of 2019."))
    log.turn(a.CmdRun(command="make schema"), o.CmdOutput(content="no rule", exit_code=2))
    ordinary(log, 60)
    return log


def forgotten(log: Log) -> Log:
    """Condensed until the model has nothing but the last turn and the summary."""
    for _ in range(12):
        log.add(a.CondensationRequest())
        if condense(log, Importance(SMALL)) is None:
            return log
    return log


def test_ordinary_output_is_masked_before_turns_are_forgotten() -> None:
    log = worked()
    condensation = condense(log, Importance(SizeBound(12_000)))
    assert condensation is not None
    assert condensation.masked and not condensation.forgotten
    shown = sent_text(log)
    assert "Subtraction is the cause." in shown and "found 3 " in shown
    assert "x" * 800 in shown  # the last turns are whole


def test_ordinary_turns_are_forgotten_before_those_with_changes() -> None:
    log = worked()
    ordinary(log, 120, size=300)
    condensation = condense(log, Importance(SizeBound(6_000)))
    assert condensation is not None and condensation.forgotten
    messages = ConversationMemory().messages(log.state)
    assert_pairs_are_complete(messages)
    calls = [m for m in messages if m.get("tool_calls")]
    assert any(m["content"] == "Subtraction is the cause." for m in calls)
    assert "found 3 " not in str(messages)


def test_the_results_of_forgotten_work_are_in_the_summary() -> None:
    log = forgotten(worked())
    shown = sent_text(log)
    assert sum(m["role"] == "assistant" for m in ConversationMemory().messages(log.state)) == 1
    for known in (
        "- src/sum.py: 1 change", "Subtraction is the cause.", "-a - b", "+a + b",
        "- conf.ini: 1 change, last with `make conf`",
        "[exit code 1] cd x && pytest -q; files were changed since",
        "FAILED tests/test_sum.py::test_two", "1 failed, 3 passed",
        "[x] find it", "[ ] write the note", "the cache must be emptied as well",
        "You: Which table?", "The one of 2019.", "[exit code 2] make schema", "fix it",
    ):  # fmt: skip
        assert known in shown.replace("\\n", "\n"), known


def test_the_summary_has_the_last_state_and_not_the_first() -> None:
    log = worked()
    passed = o.CmdOutput(content="4 passed in 0.1s", exit_code=0)
    log.turn(a.CmdRun(command="cd x && pytest -q"), passed)
    log.turn(a.PlanUpdate(items=(PlanItem(title="all new"),)), o.PlanUpdated())
    ordinary(log, 5)
    summary = of(forgotten(log), Condensation)[-1].summary
    assert "[exit code 0] cd x && pytest -q (run 2 times)\n  4 passed" in summary
    assert "1 failed" not in summary
    assert "all new" in summary and "write the note" not in summary


def test_a_thousand_changed_files_and_tests_have_a_bounded_summary() -> None:
    log = started()
    for number in range(1_000):
        result = o.FileEditResult(path=f"src/file_{number}.py", diff="-a\n+b" * 50)
        edit = a.FileEdit(command="insert", path=f"src/file_{number}.py", new_str="b")
        log.turn(edit, result, text=f"Because of case {number}. " * 20)
        output = o.CmdOutput(content="FAILED x\n" * 50 + f"{number} failed", exit_code=1)
        log.turn(a.CmdRun(command=f"pytest tests/test_{number}.py"), output)
        log.turn(a.Think(content=f"note {number} " * 40), o.Null())
    log.add(a.CondensationRequest())
    condense(log, Importance(SizeBound(100_000)))
    summary = of(log, Condensation)[-1].summary
    assert len(summary) < 28_000
    assert "src/file_999.py" in summary and "tests/test_999.py" in summary
    assert "- Before these: src/file_" in summary and " more\n" in summary
    assert "earlier ones not listed" in summary
    assert "note 0 " in summary and "note 999 " in summary


def test_it_condenses_seldom_and_stays_below_its_bound() -> None:
    log = started()
    condensing = LogCondenser(Importance(SMALL))
    longest = 0
    for number in range(500):
        ordinary(log, 1, size=400 + 1_000 * (number % 3))
        condensation = condensing.condense(log.state)
        if condensation is not None:
            log.add(condensation)
        if number % 20 == 0:
            longest = max(longest, len(sent_text(log)))
    assert len(of(log, Condensation)) < 100
    assert longest < 40_000


def test_notes_of_a_model_are_labeled_next_to_the_facts() -> None:
    log = worked()
    ordinary(log, 120, size=300)
    model = Noting("The parser is in src/parse.py.")
    condense(log, Importance(SizeBound(4_000), FreeTextNoteWriter(asker(log, model))))
    shown = sent_text(log)
    assert "src/sum.py" in shown
    assert "It was written from the same log and can be wrong" in shown
    assert "The parser is in src/parse.py." in shown
    assert "fix it" in model.asked[0] and "grep 3" in model.asked[0]


def test_without_a_model_there_are_only_facts() -> None:
    log = worked()
    ordinary(log, 120, size=300)
    model = Noting(ModelError("no such key"))
    condensation = condense(
        log, Importance(SizeBound(4_000), FreeTextNoteWriter(asker(log, model)))
    )
    assert condensation is not None and condensation.notes == ""
    assert "src/sum.py" in condensation.summary
    ((about, message),) = warnings(log)
    assert about == "condenser" and "no such key" in message


def test_a_conversation_below_the_limit_is_not_condensed() -> None:
    assert condense(filled(10), Importance(SMALL)) is None


def test_an_edit_by_python_is_a_change() -> None:
    log = started()
    changed = o.ChangedPaths(paths=("a.py",), count=1, differing=1)
    log.turn(a.IPythonRunCell(code="f()"), o.IPythonOutput(content="ok", changed=changed))
    log.turn(a.IPythonRunCell(code="print(1)"), o.IPythonOutput(content="1"))
    view = Shown().view(log.state)
    assert [importance(turn) for turn in view.turns] == [CHANGED, ORDINARY]


def test_the_summary_says_which_steps_it_covers() -> None:
    log = started()
    ordinary(log, 60)
    condense(log, Importance(SizeBound(4_000), keep_first=2, keep_last=5))
    [condensation] = of(log, Condensation)
    shown = Shown().view(log.state).turns
    assert f"{60 - len(shown)} steps left out." in condensation.summary
    assert f"after the first {len(shown) - 2} steps shown below" in condensation.summary
