"""What stands between an action of the agent and its being done: how risky it is, and whether a
person must agree first.

All of it is in the log, so a run that was cut off at any event goes on where it was: what was
judged is not judged again, what was asked is not decided twice, what was approved is done once.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from resolver.config.templates import render
from resolver.controller.control import Approve, Deny
from resolver.controller.requests import Requests
from resolver.events import actions as a
from resolver.events.base import ActionBase, Source
from resolver.events.lifecycle import (
    ConfirmationAnswered,
    ConfirmationAsked,
    DelegateEvent,
    RiskAssessed,
)
from resolver.events.log import SANDBOX_ACTIONS, Event, parse_logged_event
from resolver.events.observations import CmdOutput, ErrorObservation
from resolver.events.state import State
from resolver.events.stream import EventStream
from resolver.models.approval import PendingApproval, RiskLevel, number_for
from resolver.models.run import RunState
from resolver.security.risk.analyzer import RuleAnalyzer
from resolver.security.risk.findings import Risk

CHECKED = (*SANDBOX_ACTIONS, a.McpCall)
"""The actions that do something. What only looks a thing up for the agent (Recall, a search of the
index) and a delegate's start are none: a delegate's own actions are checked one by one."""

WAIT = 600.0
"""Seconds that a process waits for a person; the default."""

LONGEST_SHOWN = 20_000
"""Characters of an action that a person is shown. What is longer is refused: nobody approves what
they have not seen."""

_OWN_FIELDS = frozenset(ActionBase.model_fields) | {"kind"}

Policy = Literal["never", "high", "always"]
Tell = Callable[[PendingApproval], datetime | None]
"""Shows a person what waits; when it could be seen, None where it could not be shown."""


class Analyzer(Protocol):
    """Judges an action. cwd: where the shell is, "" where that is not known."""

    def assess(self, action: ActionBase, cwd: str = "") -> Risk: ...


def notify_nobody(wanted: PendingApproval) -> datetime | None:  # noqa: ARG001 - there is nobody to show it to
    """For a run without a thread."""
    return None


@dataclass(frozen=True)
class Confirmation:
    """The rules of a run.

    policy: which actions need a person: none, those of high risk, all.
    on_high: what is done about a high risk under `high`: it is refused, or it waits.
    wait: seconds that a process waits for a decision; the run then ends, and can go on from there.
    record_all: low risks are in the log as well.
    analyzers: makes the judge of one agent's log.
    shown: a text as a person is shown it, where that may be longer.
    """

    policy: Policy = "never"
    on_high: Literal["refuse", "wait"] = "refuse"
    wait: float = WAIT
    record_all: bool = False
    analyzers: Callable[[EventStream], Analyzer] = lambda stream: RuleAnalyzer()  # noqa: ARG005
    shown: Callable[[str], str] = str
    tell: Tell = notify_nobody


@dataclass(frozen=True)
class GateDecision:
    """Whether an action may be done now. answer: what the agent is told instead; None when the
    action waits, and the run with it."""

    allowed: bool
    answer: ErrorObservation | None = None


ALLOWED = GateDecision(allowed=True)
WAITS = GateDecision(allowed=False)


@dataclass(frozen=True)
class Gate:
    """The gate of one agent's log."""

    confirmation: Confirmation
    requests: Requests
    stream: EventStream
    state: State
    now: Callable[[], datetime]
    analyzer: Analyzer = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "analyzer", self.confirmation.analyzers(self.stream))

    def holds(self, action: ActionBase) -> bool:
        """Whether the log says that the action was not let through: it waits, or was denied."""
        answer = self._answer(action)
        denied = answer is not None and not answer.approved
        return denied or self.state.run_state is RunState.AWAITING_CONFIRMATION

    def judge(self, action: ActionBase) -> GateDecision:
        """Let the action through, refuse it, or wait for a person. Raises Stopped when a person
        ends the run meanwhile."""
        if not isinstance(action, CHECKED) or action.source is not Source.AGENT:
            return ALLOWED
        answer = self._answer(action)
        if answer is None:
            risk = self._risk(action)
            policy = self.confirmation.policy
            is_high = risk.level is RiskLevel.HIGH
            if policy == "never" or (policy == "high" and not is_high):
                self.requests.go_on()
                return ALLOWED
            if policy == "high" and self.confirmation.on_high == "refuse":
                return _refused(risk)
            text = describe_action(action)
            if len(self.confirmation.shown(text)) > LONGEST_SHOWN:
                return _refused(risk, too_long=True)
            answer = self._decided(action, risk, text)
        if answer is None:
            return WAITS
        self.requests.go_on()
        return ALLOWED if answer.approved else _denied(answer)

    def _risk(self, action: ActionBase) -> Risk:
        """As the log has it, else as it is judged now."""
        for event in self.state.events[action.id + 1 :]:
            if isinstance(event, RiskAssessed) and event.action == action.id:
                return Risk(event.level, event.reasons)
        risk = self.analyzer.assess(action, self._cwd())
        if risk.level is not RiskLevel.LOW or self.confirmation.record_all:
            told = RiskAssessed(action=action.id, level=risk.level, reasons=risk.reasons)
            self.stream.add(told)
        return risk

    def _cwd(self) -> str:
        outputs = (e for e in reversed(self.state.events) if isinstance(e, CmdOutput))
        last = next(outputs, None)
        return last.cwd if last else ""

    def _asked(self, action: ActionBase) -> ConfirmationAsked | None:
        for event in reversed(self.state.events[action.id + 1 :]):
            if isinstance(event, ConfirmationAsked) and event.action == action.id:
                return event
        return None

    def _answer(self, action: ActionBase) -> ConfirmationAnswered | None:
        for event in self.state.events[action.id + 1 :]:
            if isinstance(event, ConfirmationAnswered) and event.action == action.id:
                return event
        return None

    def _decided(self, action: ActionBase, risk: Risk, text: str) -> ConfirmationAnswered | None:
        """What a person decides, once it is in the log; None when nobody did in time."""
        kind = str(getattr(action, "kind", ""))
        wanted = PendingApproval(
            kind=kind,
            text=text,
            level=risk.level,
            reasons=risk.reasons,
            number=number_for(action.id, kind, text),
        )
        self.requests.await_confirmation(pending_approval_for(wanted))
        asked, found = self._asked(action), None
        if asked is not None and asked.shown_at is not None:
            # What was decided about an action that an earlier process has shown came with this one.
            found = self.requests.decision(asked.wanted, asked.shown_at, 0.0)
        if found is None:
            shown = self.confirmation.tell(wanted)
            self.stream.add(ConfirmationAsked(action=action.id, wanted=wanted, shown_at=shown))
            if shown is not None:  # else nobody can have seen it, whatever they say
                found = self.requests.decision(wanted, shown, self.confirmation.wait)
        if found is None:
            return None
        approved = isinstance(found, Approve)
        reason = found.reason if isinstance(found, Deny) else ""
        return self.stream.add(
            ConfirmationAnswered(action=action.id, approved=approved, by=found.by, reason=reason)
        )


def pending_approval_in(state: State) -> PendingApproval | None:
    """What the run waits for, in its own log or a delegate's; None when it does not wait."""
    if state.run_state is not RunState.AWAITING_CONFIRMATION:
        return None
    return next((asked.wanted for asked in map(_asked_in, reversed(state.events)) if asked), None)


def _asked_in(event: Event) -> ConfirmationAsked | None:
    while isinstance(event, DelegateEvent):
        event = parse_logged_event(event.event)
    return event if isinstance(event, ConfirmationAsked) else None


def pending_approval_for(wanted: PendingApproval) -> str:
    """One line for a person: what waits, and why."""
    why = wanted.reasons[0] if wanted.reasons else f"{wanted.level.value} risk"
    first = wanted.text.strip().partition("\n")[0][:200]
    return f"waits for `approve`: {first} ({why})"


def describe_action(action: ActionBase) -> str:
    """All of what the action would do, as a person reads it."""
    match action:
        case a.CmdRun(command=command, is_input=False):
            return command
        case a.IPythonRunCell(code=code) | a.BrowseInteractive(code=code):
            return code
        case a.BrowseURL(url=url):
            return url
        case _:
            own = action.model_dump(mode="json", exclude=set(_OWN_FIELDS), exclude_none=True)
            return json.dumps(own, indent=2, ensure_ascii=False)


def _refused(risk: Risk, *, too_long: bool = False) -> GateDecision:
    words = render("agent/refused_action.md.j2", risk=risk, too_long=too_long).strip()
    return GateDecision(allowed=False, answer=ErrorObservation(content=words, code="refused"))


def _denied(answer: ConfirmationAnswered) -> GateDecision:
    words = render("agent/denied_action.md.j2", by=answer.by, reason=answer.reason).strip()
    return GateDecision(allowed=False, answer=ErrorObservation(content=words, code="denied"))
