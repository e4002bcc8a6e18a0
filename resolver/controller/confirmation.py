"""The gate that each action passes before it is executed: risk assessment and approval.

All its decisions are in the log, so that a run that was cut off after any event continues
correctly: an assessed action is not assessed again, a decision is not asked for twice, and an
approved action is executed once.

The rules assess each action. A model may assess it too: it can raise a risk and never lowers one,
because it reads text of another model, which may contain a prompt injection.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from resolver.config.templates import render
from resolver.controller.control import Approve, ControlRequestHandler, Deny
from resolver.errors import ModelError
from resolver.events import actions as a
from resolver.events.actions import SandboxAction
from resolver.events.base import ActionBase, Source
from resolver.events.lifecycle import (
    ConfirmationAnswered,
    ConfirmationAsked,
    DelegateEvent,
    RiskAssessed,
    Warned,
)
from resolver.events.log import Event, parse_logged_event
from resolver.events.observations import CmdOutput, ErrorObservation
from resolver.events.state import State
from resolver.events.stream import EventStream
from resolver.llm.base import Model
from resolver.models.approval import PendingApproval, RiskLevel, approval_number
from resolver.models.run import RunState
from resolver.security.risk.analyzer import RuleAnalyzer
from resolver.security.risk.findings import Risk, higher_level, shorten_finding

MODEL_ASSESSED_ACTIONS = (a.CmdRun, a.IPythonRunCell, a.BrowseURL, a.BrowseInteractive, a.McpCall)
"""The actions that the model assesses. Views and edits of files are left to the rules."""

MAX_ACTION_LENGTH = 8_000
"""Maximum length of an action in the request, in characters.

Of a longer one the head and the tail are sent.
"""

_JSON_OBJECT = re.compile(r"\{[^{}]{0,4000}\}")
_BASE_FIELDS = frozenset(ActionBase.model_fields)


class _Opinion(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    level: RiskLevel
    reason: str = ""


@dataclass(frozen=True)
class ModelRiskAnalyzer:
    """Assesses actions by the rules and, if they do not result in high risk, by a model.

    stream: gets a warning if the model could not be asked; then only the rules count.
    """

    rules: RuleAnalyzer
    model: Model
    stream: EventStream

    def assess(self, action: ActionBase, cwd: str = "") -> Risk:
        """Return the higher of the two risks, with the reasons of both."""
        risk = self.rules.assess(action, cwd)
        if risk.level is RiskLevel.HIGH or not isinstance(action, MODEL_ASSESSED_ACTIONS):
            return risk
        opinion = self._ask_model(action)
        if opinion is None or opinion.level is RiskLevel.LOW:
            return risk
        reason = (
            f"judge: {shorten_finding(opinion.reason) or 'no reason given'} (a model's opinion)"
        )
        return Risk(higher_level(risk.level, opinion.level), (*risk.reasons, reason))

    def _ask_model(self, action: ActionBase) -> _Opinion | None:
        """Return the model's opinion, None (with a warning in the log) if there is none."""
        fields = action.model_dump(mode="json", exclude=set(_BASE_FIELDS), exclude_none=True)
        text = json.dumps(fields, ensure_ascii=False)
        if len(text) > MAX_ACTION_LENGTH:
            text = f"{text[: MAX_ACTION_LENGTH // 2]} ... {text[-MAX_ACTION_LENGTH // 2 :]}"
        messages = [
            {"role": "system", "content": render("agent/judge.md.j2").strip()},
            {"role": "user", "content": text},
        ]
        try:
            reply = self.model.complete(messages)
        except ModelError as error:
            self._warn(f"the judge could not be asked, so only the rules apply: {error.what}")
            return None
        # Models reason before they decide, so the last valid object is the answer.
        for json_text in reversed(_JSON_OBJECT.findall(reply.text)):
            try:
                return _Opinion.model_validate_json(json_text)
            except ValidationError:
                continue
        self._warn("the judge's answer could not be read, so only the rules apply")
        return None

    def _warn(self, message: str) -> None:
        self.stream.add(Warned(about="judge", message=message))


GATED_ACTIONS = (SandboxAction, a.McpCall)
"""The actions that are checked.

Actions that only look something up for the agent (Recall, code search) are not, nor is the start of
a delegate, whose own actions are checked one by one.
"""

DEFAULT_WAIT_SECONDS = 600.0
"""Default time that a process waits for a person, in seconds."""

MAX_SHOWN_LENGTH = 20_000
"""Maximum length of an action that a person is asked to approve, in characters.

A longer one is refused, because nobody should approve what they have not seen completely.
"""

_OWN_FIELDS = frozenset(ActionBase.model_fields) | {"kind"}

Policy = Literal["never", "high", "always"]
ApprovalNotifier = Callable[[PendingApproval], datetime | None]
"""Shows a pending approval to a person.

Returns the time from which it is visible, None if it could not be shown.
"""


class RiskAnalyzer(Protocol):
    """Assesses the risk of actions."""

    def assess(self, action: ActionBase, cwd: str = "") -> Risk:
        """Return the risk of the action. cwd: working directory of the shell, "" if unknown."""
        ...


def notify_nobody(approval: PendingApproval) -> datetime | None:  # noqa: ARG001 - the signature is that of ApprovalNotifier
    """Return None: the run has no conversation to ask in."""
    return None


@dataclass(frozen=True)
class Confirmation:
    """The confirmation rules of a run.

    policy: which actions need the approval of a person: none, those of high risk, or all.
    on_high: under the policy `high`, whether an action of high risk is refused or waits for
    approval.
    wait: seconds that a process waits for a decision. After that the run ends, and can be resumed.
    record_all: record low risks in the log too.
    analyzers: creates the analyzer for one agent's log.
    display_form: returns a text as it is shown to a person, which may be longer because of
    escaping.
    notify: shows a pending approval to a person.
    """

    policy: Policy = "never"
    on_high: Literal["refuse", "wait"] = "refuse"
    wait: float = DEFAULT_WAIT_SECONDS
    record_all: bool = False
    analyzers: Callable[[EventStream], RiskAnalyzer] = lambda stream: RuleAnalyzer()  # noqa: ARG005
    display_form: Callable[[str], str] = str
    notify: ApprovalNotifier = notify_nobody


@dataclass(frozen=True)
class GateDecision:
    """The decision about an action.

    allowed: the action may be executed now.
    answer: the error for the agent if the action is refused; None if the action, and the run with
    it, waits.
    """

    allowed: bool
    answer: ErrorObservation | None = None


ALLOWED = GateDecision(allowed=True)
WAITING = GateDecision(allowed=False)


@dataclass(frozen=True)
class Gate:
    """Checks the actions of one agent's log."""

    confirmation: Confirmation
    requests: ControlRequestHandler
    stream: EventStream
    state: State
    now: Callable[[], datetime]
    analyzer: RiskAnalyzer = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "analyzer", self.confirmation.analyzers(self.stream))

    def is_held(self, action: ActionBase) -> bool:
        """Return True if, by the log, the action waits for approval or was denied."""
        answer = self._find_answer(action)
        denied = answer is not None and not answer.approved
        return denied or self.state.run_state is RunState.AWAITING_CONFIRMATION

    def judge(self, action: ActionBase) -> GateDecision:
        """Return whether the action is allowed, refused or has to wait.

        Waits for the decision of a person if the rules ask for one. Raises RunStopped if a person
        stops the run meanwhile.
        """
        if not isinstance(action, GATED_ACTIONS) or action.source is not Source.AGENT:
            return ALLOWED
        answer = self._find_answer(action)
        if answer is None:
            risk = self._find_or_assess_risk(action)
            policy = self.confirmation.policy
            is_high = risk.level is RiskLevel.HIGH
            if policy == "never" or (policy == "high" and not is_high):
                self.requests.end_confirmation()
                return ALLOWED
            if policy == "high" and self.confirmation.on_high == "refuse":
                return _refuse(risk)
            text = describe_action(action)
            if len(self.confirmation.display_form(text)) > MAX_SHOWN_LENGTH:
                return _refuse(risk, too_long=True)
            answer = self._ask_person(action, risk, text)
        if answer is None:
            return WAITING
        self.requests.end_confirmation()
        return ALLOWED if answer.approved else _deny(answer)

    def _find_or_assess_risk(self, action: ActionBase) -> Risk:
        """Return the risk from the log, or assess the action now if the log has none."""
        for event in self.state.events[action.id + 1 :]:
            if isinstance(event, RiskAssessed) and event.action == action.id:
                return Risk(event.level, event.reasons)
        risk = self.analyzer.assess(action, self._working_directory())
        if risk.level is not RiskLevel.LOW or self.confirmation.record_all:
            assessment = RiskAssessed(action=action.id, level=risk.level, reasons=risk.reasons)
            self.stream.add(assessment)
        return risk

    def _working_directory(self) -> str:
        outputs = (event for event in reversed(self.state.events) if isinstance(event, CmdOutput))
        last_output = next(outputs, None)
        return last_output.cwd if last_output else ""

    def _find_request(self, action: ActionBase) -> ConfirmationAsked | None:
        for event in reversed(self.state.events[action.id + 1 :]):
            if isinstance(event, ConfirmationAsked) and event.action == action.id:
                return event
        return None

    def _find_answer(self, action: ActionBase) -> ConfirmationAnswered | None:
        for event in self.state.events[action.id + 1 :]:
            if isinstance(event, ConfirmationAnswered) and event.action == action.id:
                return event
        return None

    def _ask_person(self, action: ActionBase, risk: Risk, text: str) -> ConfirmationAnswered | None:
        """Return a person's decision after adding it to the log, None if there is none in time."""
        kind = str(getattr(action, "kind", ""))
        approval = PendingApproval(
            kind=kind,
            text=text,
            level=risk.level,
            reasons=risk.reasons,
            number=approval_number(action.id, kind, text),
        )
        self.requests.await_confirmation(describe_pending_approval(approval))
        earlier_request, decision = self._find_request(action), None
        if earlier_request is not None and earlier_request.shown_at is not None:
            # An earlier process showed the action. This process may have been started because of
            # the decision, which is then waiting in the queue: take it without waiting.
            decision = self.requests.decision(earlier_request.wanted, earlier_request.shown_at, 0.0)
        if decision is None:
            shown_at = self.confirmation.notify(approval)
            self.stream.add(ConfirmationAsked(action=action.id, wanted=approval, shown_at=shown_at))
            if (
                shown_at is not None
            ):  # nobody can have seen it otherwise, so no decision is about it
                decision = self.requests.decision(approval, shown_at, self.confirmation.wait)
        if decision is None:
            return None
        approved = isinstance(decision, Approve)
        reason = decision.reason if isinstance(decision, Deny) else ""
        return self.stream.add(
            ConfirmationAnswered(action=action.id, approved=approved, by=decision.by, reason=reason)
        )


def pending_approval_in(state: State) -> PendingApproval | None:
    """Return the approval that the run, or a delegate of it, waits for; None if there is none."""
    if state.run_state is not RunState.AWAITING_CONFIRMATION:
        return None
    return next(
        (
            request.wanted
            for request in map(_approval_request_in, reversed(state.events))
            if request
        ),
        None,
    )


def _approval_request_in(event: Event) -> ConfirmationAsked | None:
    while isinstance(event, DelegateEvent):
        event = parse_logged_event(event.event)
    return event if isinstance(event, ConfirmationAsked) else None


def describe_pending_approval(approval: PendingApproval) -> str:
    """Return one line that tells a person what waits, and why."""
    reason = approval.reasons[0] if approval.reasons else f"{approval.level.value} risk"
    first_line = approval.text.strip().partition("\n")[0][:200]
    return f"waits for `approve`: {first_line} ({reason})"


def describe_action(action: ActionBase) -> str:
    """Return everything the action would do, as text for a person."""
    match action:
        case a.CmdRun(command=command, is_input=False):
            return command
        case a.IPythonRunCell(code=code) | a.BrowseInteractive(code=code):
            return code
        case a.BrowseURL(url=url):
            return url
        case _:
            fields = action.model_dump(mode="json", exclude=set(_OWN_FIELDS), exclude_none=True)
            return json.dumps(fields, indent=2, ensure_ascii=False)


def _refuse(risk: Risk, *, too_long: bool = False) -> GateDecision:
    content = render("agent/refused_action.md.j2", risk=risk, too_long=too_long).strip()
    return GateDecision(allowed=False, answer=ErrorObservation(content=content, code="refused"))


def _deny(answer: ConfirmationAnswered) -> GateDecision:
    content = render("agent/denied_action.md.j2", by=answer.by, reason=answer.reason).strip()
    return GateDecision(allowed=False, answer=ErrorObservation(content=content, code="denied"))
