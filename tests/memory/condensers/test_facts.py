"""Tests of the facts about the work that are derived from the log."""

import pytest
from hypothesis import given
from pydantic_core import from_json

from resolver.config.agent_settings import parse_condenser
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import EventBase
from resolver.events.lifecycle import ConfirmationAnswered, ConfirmationAsked, DelegateEvent
from resolver.events.log import dump_line
from resolver.events.state import State
from resolver.memory.condensers.registry import CondenserParts, LogCondenser, make_condenser
from resolver.memory.condensers.view import SizeBound
from resolver.memory.facts import DEFAULT_MAX_LENGTH, Facts, WorkRecord
from resolver.models.approval import PendingApproval, SecurityRisk
from tests.events.strategies import logs
from tests.github.reports import WHEN
from tests.memory.logs import Log, started, task


def facts_of(log: Log) -> Facts:
    facts = Facts()
    facts.update(log.state)
    return facts


def summary(log: Log, room: int = DEFAULT_MAX_LENGTH) -> str:
    return render("agent/summary.md.j2", WorkRecord(1, 1, facts_of(log).summarize(room)))


def ran(log: Log, command: str, output: str = "", code: int = 0) -> None:
    log.turn(a.CmdRun(command=command), o.CmdOutput(content=output, exit_code=code))


def test_a_file_keeps_its_last_change_and_how_often_it_was_changed() -> None:
    log = started()
    for word in ("one", "two"):
        edit = a.FileEdit(command="insert", path="a.py", new_str=word)
        log.turn(edit, o.FileEditResult(path="a.py", diff=f"@@\n+{word}\n"), text=f"for {word}")
    text = summary(log)
    assert "- a.py: 2 changes\n  Your words at the time: for two\n  +two" in text
    assert "+one" not in text


def test_an_edit_that_failed_is_no_change() -> None:
    log = started()
    log.turn(a.FileWrite(path="b.py", content=""), o.ErrorObservation(content="exists"))
    assert "b.py" not in summary(log)


def changed(*paths: str) -> o.ChangedPaths:
    return o.ChangedPaths(paths=paths, count=len(paths), differing=len(paths))


def test_changes_by_the_shell_and_by_python_are_listed() -> None:
    log = started()
    log.turn(a.CmdRun(command="make"), o.CmdOutput(exit_code=0, changed=changed("b.c", "c.c")))
    log.turn(a.IPythonRunCell(code="f()"), o.IPythonOutput(changed=changed("notes.md")))
    log.turn(a.CmdRun(command="rm -r x >y"), o.CmdOutput(exit_code=1, changed=changed()))
    edit = a.FileEdit(command="insert", path="/w/b.c", new_str="x")
    log.turn(edit, o.FileEditResult(path="/w/b.c", diff="@@\n+x\n", changed=changed("b.c")))
    assert list(facts_of(log).files.by_key) == ["c.c", "notes.md", "b.c"]
    assert "- b.c: 2 changes\n  +x" in summary(log)
    assert "- notes.md: 1 change, last with Python" in summary(log)


def test_a_command_has_its_last_result_and_says_that_files_changed_since() -> None:
    log = started()
    ran(log, "pytest -q", "FAILED t.py::x - boom\n1 failed", 1)
    log.turn(a.FileEdit(command="insert", path="a.py"), o.FileEditResult(path="a.py"))
    assert "[exit code 1] pytest -q; files were changed since\n  FAILED t.py::x" in summary(log)
    ran(log, "pytest -q", "3 passed")
    text = summary(log)
    assert "[exit code 0] pytest -q (run 2 times)\n  3 passed" in text
    assert "1 failed" not in text


def test_a_command_that_did_not_end_is_marked() -> None:
    log = started()
    log.turn(a.CmdRun(command="npm test"), o.CmdOutput(content="waiting", timed_out=True))
    assert "[did not end] npm test" in summary(log)


def test_the_answer_of_a_person_is_listed_with_the_question() -> None:
    log = started()
    log.turn(a.Message(content="Tabs or spaces?", wait_for_response=True), None)
    log.add(task("Tabs."))
    log.turn(a.Message(content="Sure?", wait_for_response=True), None)
    log.add(a.Message(content="go on by yourself", source="user", cause=5))
    text = summary(log)
    assert "- You: Tabs or spaces?\n  Answer: Tabs." in text
    assert "go on by yourself" not in text


def decided(log: Log, command: str, approved: bool, reason: str = "") -> None:
    action = log.add(a.CmdRun(command=command, reply=log.reply()))
    wanted = PendingApproval(kind="run", text=command, level=SecurityRisk.HIGH)
    log.add(ConfirmationAsked(action=action, wanted=wanted, shown_at=WHEN))
    log.add(ConfirmationAnswered(action=action, approved=approved, by="mona", reason=reason))
    log.add(o.ErrorObservation(content="denied", cause=action, code="denied"))


def test_decisions_of_people_are_listed_with_the_reason() -> None:
    log = started()
    decided(log, "git push --force", approved=False, reason="never push from here")
    decided(log, "rm -r build", approved=True)
    text = summary(log)
    assert "- denied by mona: git push --force\n  Why: never push from here\n" in text
    assert "- approved by mona: rm -r build\n" in text


def test_the_latest_decision_about_an_action_counts_and_a_delegates_too() -> None:
    log = started()
    decided(log, "make deploy", approved=False)
    delegate = log.add(a.Delegate(agent="CodeActAgent", task="deploy", reply=log.reply()))
    inner = Log()
    decided(inner, "make deploy", approved=True)
    for event in inner.state.events:
        log.add(DelegateEvent(delegate=delegate, event=from_json(dump_line(event))))
    text = summary(log)
    assert "approved by mona: make deploy" in text
    assert "denied" not in text


def test_decisions_survive_each_summarizing_condenser() -> None:
    for name in ("importance", "window"):
        log = started()
        decided(log, "git push --force", approved=False, reason="never push from here")
        for number in range(200):
            ran(log, f"ls {number}", "x" * 700)
        stages = parse_condenser(f"{name}(keep_first=0)")
        parts = CondenserParts(SizeBound(5_000), lambda: pytest.fail("asks no model"))
        found = LogCondenser(make_condenser(stages, parts)).condense(log.state)
        assert found is not None
        assert "denied by mona: git push --force" in found.summary


def test_files_with_shortened_details_keep_their_reason() -> None:
    log = started()
    for number in range(30):
        edit = a.FileEdit(command="insert", path=f"f{number}.py")
        diff = "".join(f"+{'y' * 90}\n" for _ in range(6))
        log.turn(edit, o.FileEditResult(path=f"f{number}.py", diff=diff), text=f"for {number}")
    assert "\n- f10.py: for 10\n" in summary(log)


def test_changes_and_checks_of_delegates_are_listed_without_thoughts() -> None:
    log = started()
    delegate = log.add(a.Delegate(agent="LocAgent", task="look", reply=log.reply()))
    inner = Log()
    inner.turn(a.FileEdit(command="insert", path="x.py"), o.FileEditResult(path="x.py"))
    ran(inner, "pytest tests/x", "1 passed")
    inner.turn(a.Think(content="a thought of its own"), o.Null())
    for event in inner.state.events:
        log.add(DelegateEvent(delegate=delegate, event=from_json(dump_line(event))))
    log.add(o.DelegateResult(content="it is in x.py", cause=delegate))
    text = summary(log)
    assert "- x.py: 1 change by a delegate" in text
    assert "[exit code 0] pytest tests/x (by a delegate)" in text
    assert "- LocAgent: look\n  Result: it is in x.py" in text
    assert "a thought of its own" not in text


def test_another_state_is_detected() -> None:
    first, second = started(), started()
    for log, path in ((first, "a.py"), (second, "b.py")):
        log.turn(a.CmdRun(command="rm *"), o.CmdOutput(exit_code=0, changed=changed(path)))
    facts = Facts()
    for log in (first, second, first):
        facts.update(log.state)
        assert list(facts.files.by_key) == list(facts_of(log).files.by_key)


def test_a_long_plan_loses_completed_items_first() -> None:
    log = started()
    items = [{"title": f"done {n} " + "x" * 90, "status": "done"} for n in range(60)]
    items += [{"title": f"todo {n} " + "y" * 90} for n in range(10)]
    log.turn(a.PlanUpdate.model_validate({"items": items}), o.PlanUpdated())
    text = summary(log)
    assert "todo 0 " in text and "todo 9 " in text
    assert "done 0 " not in text and "items not listed" in text


@given(events=logs())
def test_the_facts_of_any_log_are_within_their_limits(events: list[EventBase]) -> None:
    state = State()
    facts = Facts()
    for event in events:
        state.apply(event)  # type: ignore[arg-type]
        facts.update(state)
    text = render("agent/summary.md.j2", WorkRecord(1, 1, facts.summarize(2_000)))
    assert len(text) < 12_000
    again = Facts()
    again.update(state)
    assert again.summarize() == facts.summarize()
