"""Tests of what the default condenser leaves of the work: masked results, a record, notes."""

from pydantic_core import from_json

from resolver.config.agent_settings import parse_condensers
from resolver.config.settings import Settings
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.lifecycle import ConfirmationAnswered, ConfirmationAsked, DelegateEvent
from resolver.events.log import dump_line
from resolver.memory.condensers.registry import make_condenser
from resolver.memory.condensers.rules import record_work
from resolver.memory.condensers.view import Condenser, CondenserView
from resolver.memory.turns import History
from resolver.models.approval import PendingApproval, SecurityRisk
from resolver.models.run import PlanItem
from tests.github.reports import WHEN
from tests.memory.condensers.scenarios import Noting, asker, condense, sent_text
from tests.memory.logs import Log, started, task


def default(log: Log, model: Noting) -> Condenser:
    return make_condenser(parse_condensers(Settings().condenser), lambda: asker(log, model))


def changed(*paths: str) -> o.ChangedPaths:
    return o.ChangedPaths(paths=paths, count=len(paths), differing=len(paths))


def decide(log: Log, command: str, approved: bool, reason: str = "") -> None:
    action = log.add(a.CmdRun(command=command, reply=log.reply()))
    wanted = PendingApproval(kind="run", text=command, level=SecurityRisk.HIGH)
    log.add(ConfirmationAsked(action=action, wanted=wanted, shown_at=WHEN))
    log.add(ConfirmationAnswered(action=action, approved=approved, by="mona", reason=reason))
    log.add(o.ErrorObservation(content="denied", cause=action, code="denied"))


def delegate(log: Log, inner: Log) -> None:
    number = log.add(a.Delegate(agent="LocAgent", task="look", reply=log.reply()))
    for event in inner.state.events:
        log.add(DelegateEvent(delegate=number, event=from_json(dump_line(event))))


def worked(later: int) -> Log:
    """A run in which things were decided and changed, and much was looked at since."""
    log = started()
    plan = (PlanItem(title="find it", status="done"), PlanItem(title="write the note"))
    log.turn(a.PlanUpdate(items=plan), o.PlanUpdated(content="noted"))
    edit = a.FileEdit(command="str_replace", path="src/sum.py", old_str="a", new_str="b")
    log.turn(edit, o.FileEditResult(path="src/sum.py", changed=changed("src/sum.py")), text="Why.")
    log.turn(a.CmdRun(command="make"), o.CmdOutput(exit_code=0, changed=changed("conf.ini")))
    log.turn(a.Message(content="Which table?", wait_for_response=True), None)
    log.add(task("The one of 2019."))
    decide(log, "git push --force", approved=False, reason="never push from here")
    for number in range(later):
        output = o.CmdOutput(content=f"found {number} " + "x" * 900, exit_code=0)
        log.turn(a.CmdRun(command=f"grep {number}"), output)
    return log


def test_what_is_forgotten_is_replaced_by_a_record_and_the_notes_of_a_model() -> None:
    log, model = worked(180), Noting("The parser is in src/parse.py.")
    condensation = condense(log, default(log, model), 4_000)
    assert condensation is not None and condensation.notes == "The parser is in src/parse.py."
    assert "fix it" in model.asked[0] and "grep 3" in model.asked[0]
    shown = sent_text(log).replace("\\n", "\n")
    for text in (
        "[x] find it", "[ ] write the note", "- src/sum.py", "- conf.ini", "You: Which table?",
        "Answer: The one of 2019.", "denied by mona: git push --force\n  Why: never push from here",
        "It was written from the same log and can be wrong", "The parser is in src/parse.py.",
    ):  # fmt: skip
        assert text in shown, text


def test_the_record_has_the_latest_state_and_what_delegates_did() -> None:
    log = worked(0)
    log.turn(a.PlanUpdate(items=(PlanItem(title="all new"),)), o.PlanUpdated())
    inner = Log()
    inner.turn(
        a.CmdRun(command="x"), o.CmdOutput(exit_code=0, changed=changed("x.py", "src/sum.py"))
    )
    decide(inner, "git push --force", approved=True)
    delegate(log, inner)
    log.turn(a.Message(content="Sure?", wait_for_response=True), None)
    log.add(a.Message(content="go on by yourself", source="user", cause=5))
    record = record_work(CondenserView(History(), log.state.events, lambda: 1).events, 1)
    assert [item.title for item in record.plan] == ["all new"]
    assert record.changed == ("conf.ini", "x.py", "src/sum.py")
    assert [(text, d.approved) for text, d in record.decisions.items()] == [
        ("git push --force", True)
    ]
    assert record.answers == (("Which table?", "The one of 2019."),)


def test_a_record_of_a_long_run_is_bounded() -> None:
    log = worked(0)
    for number in range(300):
        log.turn(
            a.CmdRun(command="x"), o.CmdOutput(exit_code=0, changed=changed(f"src/{number}.py"))
        )
        decide(log, f"deploy {number} " + "x" * 1_000, approved=True, reason="y" * 1_000)
    log.add(a.CondensationRequest())
    condensation = condense(log, default(log, Noting()))
    assert condensation is not None and len(condensation.summary) < 40_000
    assert "src/299.py" in condensation.summary and "deploy 299" in condensation.summary
