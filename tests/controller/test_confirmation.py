"""Tests of refusing, waiting for and approving actions."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from resolver.agents.base import DummyAgent
from resolver.controller.confirmation import MAX_SHOWN_LENGTH, Confirmation, pending_approval_in
from resolver.controller.control import (
    Approve,
    Deny,
    Extend,
    MessageToAgent,
    Pause,
    Request,
    Resume,
    Stop,
)
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, Source
from resolver.events.lifecycle import (
    ConfirmationAnswered,
    ConfirmationAsked,
    LimitsExtended,
    RiskAssessed,
    Warned,
)
from resolver.events.log import Event
from resolver.models.approval import PendingApproval, RiskLevel
from resolver.models.run import Completion, Extension, RunState
from resolver.security.invisible_text import with_invisible_shown
from tests.controller.scenario import START, Scenario, all_events, bash, finish, hand_on

DANGER = "rm -rf /"
LATER = START + timedelta(days=1)
BEFORE = START - timedelta(days=1)
FINISH = a.Finish(message="ok")


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


def waiting(thread: Thread, policy: str = "high") -> Confirmation:
    # All answers are there when it begins to wait.
    return Confirmation(policy=policy, on_high="wait", wait=0.01, notify=thread.tell)  # type: ignore[arg-type]


def run(script: Sequence[ActionBase], *answers: list[Request], policy: str = "high") -> Scenario:
    scenario = Scenario()
    scenario.thread = Thread(scenario, *answers)  # type: ignore[attr-defined]
    scenario.go(DummyAgent([*script, FINISH]), confirmation=waiting(scenario.thread, policy))  # type: ignore[attr-defined]
    return scenario


def states(scenario: Scenario) -> list[RunState]:
    return [e.state for e in scenario.of(o.AgentStateChanged)]


def errors(scenario: Scenario) -> list[str]:
    return [e.code for e in scenario.nested(o.ErrorObservation)]


def test_without_a_policy_everything_is_executed_and_high_risks_are_logged() -> None:
    scenario = Scenario()
    scenario.go(DummyAgent([a.CmdRun(command=DANGER), a.CmdRun(command="ls"), FINISH]))
    assert scenario.sandbox.done == [DANGER, "ls"]
    [risk] = scenario.of(RiskAssessed)
    assert (risk.level, risk.cause) == (RiskLevel.HIGH, None)
    assert isinstance(scenario.state.events[risk.action], a.CmdRun)
    assert risk.reasons[0].startswith("destructive: ")


def test_low_risks_are_logged_if_all_are_requested() -> None:
    scenario = Scenario()
    scenario.go(
        DummyAgent([a.CmdRun(command="ls"), FINISH]), confirmation=Confirmation(record_all=True)
    )
    assert [e.level for e in scenario.of(RiskAssessed)] == [RiskLevel.LOW]


def test_an_action_is_published_before_its_assessment_and_assessed_before_its_execution() -> None:
    scenario = Scenario()
    scenario.go(DummyAgent([a.CmdRun(command=DANGER), FINISH]))
    kinds = [type(e) for e in scenario.store]
    order = [kinds.index(kind) for kind in (a.CmdRun, RiskAssessed, o.CmdOutput)]
    assert order == sorted(order)


def test_a_high_risk_is_refused_with_an_alternative() -> None:
    scenario = Scenario()
    script = [a.CmdRun(command=DANGER), a.CmdRun(command="make"), FINISH]
    scenario.go(DummyAgent(script), confirmation=Confirmation(policy="high"))
    assert scenario.sandbox.done == ["make"]
    [refused] = scenario.of(o.ErrorObservation)
    assert refused.code == "refused"
    assert "destructive: rm /" in refused.content
    assert "Continue without it" in refused.content
    assert scenario.state.run_state is RunState.FINISHED
    assert not scenario.state.pending


def test_a_medium_risk_needs_no_approval() -> None:
    scenario = run([a.CmdRun(command="git push origin fix")])
    assert scenario.sandbox.done == ["git push origin fix"]
    assert [e.level for e in scenario.of(RiskAssessed)] == [RiskLevel.MEDIUM]


def test_an_approved_action_is_executed_once_and_the_approver_logged() -> None:
    scenario = run([a.CmdRun(command=DANGER)], [Approve("maria", LATER)])
    assert scenario.sandbox.done == [DANGER]
    [answer] = scenario.of(ConfirmationAnswered)
    assert (answer.approved, answer.by) == (True, "maria")
    assert states(scenario) == [
        RunState.RUNNING, RunState.AWAITING_CONFIRMATION, RunState.RUNNING, RunState.FINISHED,
    ]  # fmt: skip
    [waits] = [e for e in scenario.of(o.AgentStateChanged) if "rm -rf /" in e.reason]
    assert waits.state is RunState.AWAITING_CONFIRMATION


def test_the_person_is_shown_the_whole_action_and_the_reasons() -> None:
    scenario = run([a.FileWrite(path="/etc/cron.d/x", content="boom")], [Approve("maria", LATER)])
    [wanted] = scenario.thread.shown  # type: ignore[attr-defined]
    assert (wanted.kind, wanted.level) == ("file_write", RiskLevel.HIGH)
    assert "/etc/cron.d/x" in wanted.text
    assert "boom" in wanted.text
    assert wanted.reasons[0].startswith("persistence: ")


def test_a_denied_action_is_not_executed_and_the_agent_is_informed_why() -> None:
    scenario = run([a.CmdRun(command=DANGER)], [Deny("maria", LATER, "use make clean")])
    assert scenario.sandbox.done == []
    [denied] = scenario.of(o.ErrorObservation)
    assert denied.code == "denied"
    assert "maria" in denied.content
    assert "use make clean" in denied.content
    assert scenario.state.run_state is RunState.FINISHED


def test_an_approval_counts_for_one_action_only() -> None:
    scenario = run(
        [a.CmdRun(command=DANGER)] * 2, [Approve("maria", LATER)], [Deny("maria", LATER)]
    )
    assert scenario.sandbox.done == [DANGER]
    assert errors(scenario) == ["denied"]


def test_a_second_approval_has_no_effect() -> None:
    twice = [Approve("maria", LATER), Approve("paul", LATER)]
    scenario = run([a.CmdRun(command=DANGER), a.CmdRun(command="ls")], twice)
    assert scenario.sandbox.done == [DANGER, "ls"]
    [warned] = [e for e in scenario.of(Warned) if e.about == "confirmation"]
    assert "The approval by paul had no effect: no action was waiting" in warned.message


def test_a_second_approval_is_not_for_the_next_action() -> None:
    twice = [Approve("maria", LATER), Approve("paul", START)]
    scenario = run([a.CmdRun(command=DANGER), a.CmdRun(command="mkfs.ext4 /dev/sda")], twice)
    assert scenario.sandbox.done == [DANGER]
    assert scenario.state.run_state is RunState.AWAITING_CONFIRMATION


@pytest.mark.parametrize("at", [BEFORE, START])
def test_an_approval_from_before_the_action_could_be_seen_does_not_count(at: datetime) -> None:
    scenario = run([a.CmdRun(command=DANGER)], [Approve("maria", at)])
    assert scenario.sandbox.done == []
    assert scenario.state.run_state is RunState.AWAITING_CONFIRMATION
    assert any(e.about == "confirmation" for e in scenario.of(Warned))


def test_a_decision_that_names_another_action_is_not_for_this_one() -> None:
    """This happens when the next action is shown while somebody answers the previous one."""
    first = run([a.CmdRun(command=DANGER)])
    [asked] = first.of(ConfirmationAsked)
    for word in (Approve, Deny):
        named = word("maria", LATER, number=asked.wanted.number)
        assert run([a.CmdRun(command=DANGER)], [named]).of(ConfirmationAnswered)
        other = run([a.CmdRun(command="mkfs.ext4 /dev/sda")], [named])
        assert other.sandbox.done == []
        assert other.state.run_state is RunState.AWAITING_CONFIRMATION
        assert not other.of(ConfirmationAnswered)


def test_the_same_command_again_has_another_number() -> None:
    scenario = run([a.CmdRun(command=DANGER)] * 2, [Approve("maria", LATER)])
    first, second = (e.wanted.number for e in scenario.of(ConfirmationAsked))
    assert first != second


def test_an_action_that_was_not_shown_can_not_be_approved() -> None:
    scenario = Scenario()

    def unseen(_: PendingApproval) -> datetime | None:
        scenario.control.send(Approve("maria", LATER))
        return None

    confirmation = replace(waiting(Thread(scenario)), notify=unseen)
    scenario.go(DummyAgent([a.CmdRun(command=DANGER), FINISH]), confirmation=confirmation)
    assert scenario.sandbox.done == []
    assert scenario.state.run_state is RunState.AWAITING_CONFIRMATION
    later = Scenario(earlier=list(scenario.store))
    later.control.send(Approve("maria", LATER))
    thread = Thread(later, [Approve("maria", LATER)])
    later.go(DummyAgent([FINISH]), confirmation=waiting(thread))
    assert [w.text for w in thread.shown] == [DANGER]
    assert later.sandbox.done == [DANGER]


def test_an_approval_while_nothing_waits_does_not_apply_later() -> None:
    scenario = Scenario()
    scenario.control.send(Approve("maria", LATER))
    thread = Thread(scenario)
    scenario.go(DummyAgent([a.CmdRun(command=DANGER), FINISH]), confirmation=waiting(thread))
    assert scenario.sandbox.done == []
    assert scenario.state.run_state is RunState.AWAITING_CONFIRMATION


def test_a_run_without_an_answer_ends_waiting_and_keeps_the_action() -> None:
    scenario = run([a.CmdRun(command=DANGER)])
    assert scenario.state.run_state is RunState.AWAITING_CONFIRMATION
    assert [type(e) for e in scenario.state.pending.values()] == [a.CmdRun]
    wanted = pending_approval_in(scenario.state)
    assert wanted is not None
    assert wanted.text == DANGER


def test_all_actions_wait_if_confirmation_is_always() -> None:
    script = [a.CmdRun(command="ls"), a.Think(content="hm"), a.FileRead(path="x")]
    scenario = run(script, [Approve("m", LATER)], [Deny("m", LATER)], policy="always")
    assert [w.kind for w in scenario.thread.shown] == ["cmd_run", "file_read"]  # type: ignore[attr-defined]
    assert scenario.sandbox.done == ["ls"]


def test_a_stop_ends_a_run_that_waits() -> None:
    scenario = run([a.CmdRun(command=DANGER)], [Stop("maria", "no")])
    assert scenario.state.run_state is RunState.STOPPED
    assert scenario.sandbox.done == []


def test_pausing_and_resuming_approve_nothing() -> None:
    scenario = run(
        [a.CmdRun(command=DANGER)], [Pause("m"), Resume("m"), Extend(Extension(time=60))]
    )
    assert scenario.state.run_state is RunState.AWAITING_CONFIRMATION
    assert scenario.of(LimitsExtended)
    assert scenario.sandbox.done == []


def test_a_comment_instead_of_a_decision_denies() -> None:
    scenario = run([a.CmdRun(command=DANGER)], [MessageToAgent("clean only build/", "maria")])
    assert scenario.sandbox.done == []
    [denied] = scenario.of(o.ErrorObservation)
    assert "clean only build/" in denied.content


def test_an_action_too_long_to_be_shown_is_refused() -> None:
    scenario = run([a.CmdRun(command=f"{DANGER} # {'x' * MAX_SHOWN_LENGTH}")])
    assert scenario.thread.shown == []  # type: ignore[attr-defined]
    assert errors(scenario) == ["refused"]
    assert "too long" in scenario.of(o.ErrorObservation)[0].content


def test_an_action_too_long_with_visible_characters_is_refused() -> None:
    scenario = Scenario()
    thread = Thread(scenario)
    command = f"{DANGER} # {chr(0x200B) * (MAX_SHOWN_LENGTH // 5)}"
    confirmation = replace(waiting(thread), display_form=with_invisible_shown)
    scenario.go(DummyAgent([a.CmdRun(command=command), FINISH]), confirmation=confirmation)
    assert thread.shown == []
    assert errors(scenario) == ["refused"]


def test_waiting_does_not_count_as_run_time() -> None:
    scenario = Scenario(seconds=1.0)
    thread = Thread(scenario)
    scenario.go(DummyAgent([a.CmdRun(command=DANGER)]), confirmation=waiting(thread))
    before = scenario.state.seconds
    assert scenario.state.elapsed(START + timedelta(days=2)) == before


def test_actions_of_the_user_are_not_assessed() -> None:
    scenario = Scenario()
    scenario.stream.add(a.CmdRun(command=DANGER, source=Source.USER))
    scenario.go(DummyAgent([FINISH]), confirmation=Confirmation(policy="high"))
    assert not scenario.of(RiskAssessed)


WORK: tuple[Completion, ...] = (
    bash("ls", DANGER, "make"),
    hand_on("clean up"),
    bash("find . -name x", "git push -f origin main"),
    finish("pushed"),
    bash("mkfs.ext4 /dev/sdb"),
    finish("done"),
)


def worked(earlier: Sequence[Event] = (), *, policy: str = "high") -> Scenario:
    """Execute the work, with people who approve the first and second action and deny the third."""
    scenario = Scenario(*WORK, earlier=earlier)

    def tell(wanted: PendingApproval) -> datetime | None:
        denied = "mkfs" in wanted.text
        scenario.control.send(Deny("maria", LATER, "no") if denied else Approve("maria", LATER))
        return START

    confirmation = Confirmation(policy=policy, on_high="wait", wait=5.0, notify=tell)  # type: ignore[arg-type]
    scenario.go(delegates=scenario.delegate, confirmation=confirmation)
    return scenario


def recorded_content(events: Sequence[Event]) -> list[tuple[str, str]]:
    kept = (a.CmdRun, o.CmdOutput, o.ErrorObservation, RiskAssessed, ConfirmationAnswered)
    left_out = {"id", "timestamp", "cause", "reply", "action"}
    return [
        (e.kind, e.model_dump_json(exclude=left_out))
        for e in all_events(events)
        if isinstance(e, kept)
    ]


def test_a_delegates_actions_wait_as_well_and_every_log_says_so() -> None:
    scenario = worked()
    assert scenario.state.run_state is RunState.FINISHED
    assert [e.approved for e in scenario.nested(ConfirmationAnswered)] == [True, True, False]
    waits = [e for e in scenario.nested(o.AgentStateChanged) if "git push -f" in e.reason]
    assert len(waits) == 2


def test_a_run_killed_after_any_event_decides_the_same() -> None:
    """Every prefix of the log, whatever it waits for, leads to the same end: nothing is decided
    twice, and what was denied is not done."""
    full = worked()
    events = list(full.store)
    for length in range(3, len(events)):
        again = worked(events[:length])
        assert recorded_content(list(again.store)) == recorded_content(events), (
            f"cut off after {length} events"
        )
        assert again.state.run_state is RunState.FINISHED
        assert "mkfs.ext4 /dev/sdb" not in again.sandbox.done


def test_a_decision_given_to_a_later_process_needs_no_second_question() -> None:
    for cut in (True, False):
        first = run([a.CmdRun(command=DANGER)])
        later = Scenario(earlier=list(first.store))
        later.control.send(Approve("maria", LATER) if cut else Deny("maria", LATER, "no"))
        thread = Thread(later)
        later.go(DummyAgent([FINISH]), confirmation=waiting(thread))
        assert thread.shown == []
        assert later.sandbox.done == ([DANGER] if cut else [])
        assert later.state.run_state is RunState.FINISHED


def test_a_later_process_without_a_decision_asks_again() -> None:
    first = run([a.CmdRun(command=DANGER)])
    later = Scenario(earlier=list(first.store))
    thread = Thread(later)
    later.go(DummyAgent([FINISH]), confirmation=waiting(thread))
    assert [w.text for w in thread.shown] == [DANGER]
    assert later.state.run_state is RunState.AWAITING_CONFIRMATION
    assert len(later.of(ConfirmationAsked)) == 2


def test_a_later_process_without_confirmation_executes_the_action() -> None:
    first = run([a.CmdRun(command=DANGER)])
    later = Scenario(earlier=list(first.store))
    later.go(DummyAgent([FINISH]))
    assert later.sandbox.done == [DANGER]
    assert later.state.run_state is RunState.FINISHED


def browsing(earlier: Sequence[Event], *requests: Request) -> Scenario:
    scenario = Scenario(earlier=earlier)
    for request in requests:
        scenario.control.send(request)
    script = [] if earlier else [a.BrowseURL(url="http://169.254.169.254/")]
    scenario.go(DummyAgent([*script, FINISH]), confirmation=waiting(Thread(scenario)))
    return scenario


def test_an_approved_external_action_is_executed_once() -> None:
    first = browsing([])
    assert first.state.run_state is RunState.AWAITING_CONFIRMATION
    later = browsing(list(first.store), Approve("maria", LATER))
    assert later.sandbox.done == ["browse_url"]


def test_an_external_action_allowed_before_is_not_repeated() -> None:
    first = browsing([])
    later = browsing(list(first.store), Approve("maria", LATER))
    events = list(later.store)
    end = next(i for i, e in enumerate(events) if isinstance(e, o.CmdOutput))
    again = browsing(events[:end])
    assert again.sandbox.done == []
    assert errors(again) == ["interrupted"]


def test_each_agent_has_the_analyzer_of_its_own_log() -> None:
    made: list[object] = []
    scenario = Scenario(*WORK)
    rules = Confirmation()

    def analyzer_of(stream: object) -> object:
        made.append(stream)
        return rules.analyzers(scenario.stream)

    confirmation = replace(rules, analyzers=analyzer_of)  # type: ignore[arg-type]
    scenario.go(delegates=scenario.delegate, confirmation=confirmation)
    assert made[0] is scenario.stream
    assert len(made) == 2
    assert made[1] is not scenario.stream
