"""Tests of refusing, waiting for and approving actions."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from resolver.controller.confirmation import MAX_SHOWN_LENGTH, Confirmation, pending_approval_in
from resolver.controller.control import (
    Approve,
    Deny,
    MessageToAgent,
    Request,
)
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase
from resolver.events.lifecycle import (
    ConfirmationAnswered,
    ConfirmationAsked,
    Warned,
)
from resolver.events.log import Event
from resolver.models.approval import PendingApproval, SecurityRisk, parse_action_rule
from resolver.models.run import Completion, RunState
from tests.controller.dummy_agent import DummyAgent
from tests.controller.scenario import START, Scenario, finish, hand_on, recorded_content, reply

DANGER = "rm -rf /"
LATER = START + timedelta(days=1)
BEFORE = START - timedelta(days=1)
FINISH = a.Finish(message="ok")


def risky(command: str) -> a.CmdRun:
    return a.CmdRun(command=command, security_risk=SecurityRisk.HIGH)


RISKY = risky(DANGER)
SAFE = a.CmdRun(command="ls", security_risk=SecurityRisk.LOW)


class Thread:
    """The conversation in which people are asked. `answers`: their answers, used in order."""

    def __init__(self, scenario: Scenario, *answers: list[Request]) -> None:
        self.shown: list[PendingApproval] = []
        self._scenario = scenario
        self._answers = list(answers)

    def tell(self, wanted: PendingApproval) -> datetime | None:
        self.shown.append(wanted)
        for request in self._answers.pop(0) if self._answers else []:
            self._scenario.control.send(request)
        return START


def waiting(thread: Thread, mode: str = "risky") -> Confirmation:
    # All answers are there when it begins to wait.
    return Confirmation(mode=mode, wait=0.01, notify=thread.tell)  # type: ignore[arg-type]


def run(script: Sequence[ActionBase], *answers: list[Request], mode: str = "risky") -> Scenario:
    scenario = Scenario()
    scenario.thread = Thread(scenario, *answers)  # type: ignore[attr-defined]
    scenario.go(DummyAgent([*script, FINISH]), confirmation=waiting(scenario.thread, mode))  # type: ignore[attr-defined]
    return scenario


def states(scenario: Scenario) -> list[RunState]:
    return [e.state for e in scenario.of(o.AgentStateChanged)]


def errors(scenario: Scenario) -> list[str]:
    return [e.code for e in scenario.nested(o.ErrorObservation)]


def test_an_action_without_a_rating_needs_approval_as_one_of_unknown_risk() -> None:
    scenario = run([a.CmdRun(command="make")])
    [asked] = scenario.of(ConfirmationAsked)
    assert (asked.wanted.level, asked.wanted.rule) == (SecurityRisk.UNKNOWN, None)


def ruled(
    *script: ActionBase,
    mode: str = "never",
    earlier: Sequence[Event] = (),
    decision: Request | None = None,
    **rules: str,
) -> Scenario:
    scenario = Scenario(earlier=earlier)
    if decision:
        scenario.control.send(decision)

    def call(action: a.McpCall) -> o.McpResult:
        scenario.sandbox.done.append(action.name)
        return o.McpResult(content="deleted")

    parsed = {name: (parse_action_rule(text),) for name, text in rules.items()}
    confirmation = replace(waiting(Thread(scenario), mode), **parsed)  # type: ignore[arg-type]
    agent = DummyAgent([*script, FINISH])
    scenario.go(agent, confirmation=confirmation, host_handlers={a.McpCall: call})
    return scenario


PUSH = a.CmdRun(command="cd x\ngit push -f", security_risk=SecurityRisk.LOW)
MCP_CALL = a.McpCall(server="issues", name="delete", arguments={"id": 7})


@pytest.mark.parametrize(
    ("action", "rule"),
    [
        (PUSH, "execute_bash"),
        (PUSH, "execute_bash(git push)"),
        (PUSH, "*(git*-f)"),
        (a.IPythonRunCell(code="!git push"), "execute_ipython_cell(git push)"),
        (a.FileWrite(path="ci/run.sh", content=""), "str_replace_editor(ci/*.sh)"),
        (MCP_CALL, "issues/*"),
        (MCP_CALL, 'issues/delete("id": 7)'),
    ],
)
@pytest.mark.parametrize("mode", ["never", "risky", "always"])
def test_a_rule_asks_a_person_or_refuses_in_every_mode(
    action: ActionBase, rule: str, mode: str
) -> None:
    asking = ruled(action, mode=mode, ask=rule)
    assert asking.state.run_state is RunState.AWAITING_CONFIRMATION
    [asked] = asking.of(ConfirmationAsked)
    assert asked.wanted.rule == rule
    refusing = ruled(action, mode=mode, refuse=rule)
    assert refusing.state.run_state is RunState.FINISHED
    [refused] = refusing.of(o.ErrorObservation)
    assert refused.code == "refused"
    assert f"`{rule}`" in refused.content and "Continue without it" in refused.content
    assert asking.sandbox.done == refusing.sandbox.done == []
    assert not asking.of(o.McpResult) and not refusing.of(o.McpResult)


def test_an_approved_action_is_executed_once_and_the_approver_logged() -> None:
    scenario = run([RISKY], [Approve("maria", LATER)])
    assert scenario.sandbox.done == [DANGER]
    [answer] = scenario.of(ConfirmationAnswered)
    assert (answer.approved, answer.by) == (True, "maria")
    assert states(scenario) == [
        RunState.RUNNING, RunState.AWAITING_CONFIRMATION, RunState.RUNNING, RunState.FINISHED,
    ]  # fmt: skip
    [waits] = [e for e in scenario.of(o.AgentStateChanged) if "rm -rf /" in (e.reason or "")]
    assert waits.state is RunState.AWAITING_CONFIRMATION


@pytest.mark.parametrize(
    "decision",
    [Deny("maria", LATER, "use make clean"), MessageToAgent("use make clean", "maria")],
)
def test_a_denied_action_is_not_executed_and_the_agent_is_informed_why(decision: Request) -> None:
    scenario = run([RISKY], [decision])
    assert scenario.sandbox.done == []
    [denied] = scenario.of(o.ErrorObservation)
    assert denied.code == "denied"
    assert "maria" in denied.content and "use make clean" in denied.content
    assert scenario.state.run_state is RunState.FINISHED


def test_a_second_approval_is_not_for_the_next_action() -> None:
    twice = [Approve("maria", LATER), Approve("paul", START)]
    scenario = run([RISKY, risky("mkfs.ext4 /dev/sda")], twice)
    assert scenario.sandbox.done == [DANGER]
    assert scenario.state.run_state is RunState.AWAITING_CONFIRMATION


@pytest.mark.parametrize("at", [BEFORE, START])
def test_an_approval_from_before_the_action_could_be_seen_does_not_count(at: datetime) -> None:
    scenario = run([RISKY], [Approve("maria", at)])
    assert scenario.sandbox.done == []
    assert scenario.state.run_state is RunState.AWAITING_CONFIRMATION
    assert any(e.about == "confirmation" for e in scenario.of(Warned))


def test_a_decision_that_names_another_action_is_not_for_this_one() -> None:
    """This happens when the next action is shown while somebody answers the previous one."""
    first = run([RISKY])
    [asked] = first.of(ConfirmationAsked)
    for word in (Approve, Deny):
        named = word("maria", LATER, number=asked.wanted.number)
        assert run([RISKY], [named]).of(ConfirmationAnswered)
        other = run([risky("mkfs.ext4 /dev/sda")], [named])
        assert other.sandbox.done == []
        assert other.state.run_state is RunState.AWAITING_CONFIRMATION
        assert not other.of(ConfirmationAnswered)


def test_an_action_that_was_not_shown_can_not_be_approved() -> None:
    scenario = Scenario()

    def unseen(_: PendingApproval) -> datetime | None:
        scenario.control.send(Approve("maria", LATER))
        return None

    confirmation = replace(waiting(Thread(scenario)), notify=unseen)
    scenario.go(DummyAgent([RISKY, FINISH]), confirmation=confirmation)
    assert scenario.sandbox.done == []
    assert scenario.state.run_state is RunState.AWAITING_CONFIRMATION
    later = Scenario(earlier=list(scenario.store))
    later.control.send(Approve("maria", LATER))
    thread = Thread(later, [Approve("maria", LATER)])
    later.go(DummyAgent([FINISH]), confirmation=waiting(thread))
    assert [w.text for w in thread.shown] == [DANGER]
    assert later.sandbox.done == [DANGER]


def test_a_run_without_an_answer_ends_waiting_and_keeps_the_action() -> None:
    scenario = run([RISKY])
    assert scenario.state.run_state is RunState.AWAITING_CONFIRMATION
    assert [type(e) for e in scenario.state.pending.values()] == [a.CmdRun]
    wanted = pending_approval_in(scenario.state)
    assert wanted is not None
    assert wanted.text == DANGER


def test_all_actions_wait_if_confirmation_is_always() -> None:
    script = [SAFE, a.Think(content="hm"), a.FileRead(path="x")]
    scenario = run(script, [Approve("m", LATER)], [Deny("m", LATER)], mode="always")
    assert [w.kind for w in scenario.thread.shown] == ["cmd_run", "file_read"]  # type: ignore[attr-defined]
    assert scenario.sandbox.done == ["ls"]


def test_an_action_too_long_to_be_shown_is_refused() -> None:
    scenario = run([risky(f"{DANGER} # {'x' * MAX_SHOWN_LENGTH}")])
    assert scenario.thread.shown == []  # type: ignore[attr-defined]
    assert errors(scenario) == ["refused"]
    assert "too long" in scenario.of(o.ErrorObservation)[0].content


DANGERS = (DANGER, "git push -f origin main", "mkfs.ext4 /dev/sdb")


def rated(*commands: str) -> Completion:
    """Return a reply with these commands and the model's ratings of them."""
    return reply(
        *(
            ("execute_bash", {"command": c, "security_risk": "HIGH" if c in DANGERS else "low"})
            for c in commands
        )
    )


WORK: tuple[Completion, ...] = (
    rated("ls", DANGER, "make"),
    hand_on("clean up"),
    rated("find . -name x", "git push -f origin main"),
    finish("pushed"),
    rated("mkfs.ext4 /dev/sdb"),
    finish("done"),
)


def worked(earlier: Sequence[Event] = ()) -> Scenario:
    """Execute the work, with people who approve the first and second action and deny the third."""
    scenario = Scenario(*WORK, earlier=earlier)

    def tell(wanted: PendingApproval) -> datetime | None:
        denied = "mkfs" in wanted.text
        scenario.control.send(Deny("maria", LATER, "no") if denied else Approve("maria", LATER))
        return START

    confirmation = Confirmation(mode="risky", wait=5.0, notify=tell)
    scenario.go(delegates=scenario.delegate, confirmation=confirmation)
    return scenario


def test_a_delegates_actions_wait_as_well_and_every_log_says_so() -> None:
    scenario = worked()
    assert scenario.state.run_state is RunState.FINISHED
    assert [e.approved for e in scenario.nested(ConfirmationAnswered)] == [True, True, False]
    waits = [e for e in scenario.nested(o.AgentStateChanged) if "git push -f" in (e.reason or "")]
    assert len(waits) == 2


def test_a_run_killed_after_any_event_decides_the_same() -> None:
    """Every prefix of the log, whatever it waits for, leads to the same end: nothing is decided
    twice, and what was denied is not done."""
    full = worked()
    events = list(full.store)
    for length in range(3, len(events)):
        again = worked(events[:length])
        assert recorded_content(again.store, True) == recorded_content(events, True), (
            f"cut off after {length} events"
        )
        assert again.state.run_state is RunState.FINISHED
        assert "mkfs.ext4 /dev/sdb" not in again.sandbox.done


def test_a_decision_given_to_a_later_process_needs_no_second_question() -> None:
    for cut in (True, False):
        first = run([RISKY])
        later = Scenario(earlier=list(first.store))
        later.control.send(Approve("maria", LATER) if cut else Deny("maria", LATER, "no"))
        thread = Thread(later)
        later.go(DummyAgent([FINISH]), confirmation=waiting(thread))
        assert thread.shown == []
        assert later.sandbox.done == ([DANGER] if cut else [])
        assert later.state.run_state is RunState.FINISHED


def test_an_external_action_allowed_before_is_not_repeated() -> None:
    first = ruled(MCP_CALL, ask="issues/*")
    allowed = Approve("maria", LATER)
    later = ruled(earlier=list(first.store), decision=allowed, ask="issues/*")
    assert later.sandbox.done == ["delete"]
    events = list(later.store)
    end = next(i for i, e in enumerate(events) if isinstance(e, o.McpResult))
    again = ruled(earlier=events[:end], ask="issues/*")
    assert again.sandbox.done == []
    assert errors(again) == ["interrupted"]
