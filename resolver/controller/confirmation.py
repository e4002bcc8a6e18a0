"""The gate that each action passes before it is executed: the operator's rules, its risk, approval.

All its decisions are in the log, so that a run that was cut off after any event continues
correctly: a decision is not asked for twice, and an approved action is executed once.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from resolver.agents.tools.registry import tool_name_of
from resolver.config.templates import render
from resolver.controller.control import Approve, ControlRequestHandler, Deny
from resolver.events import actions as a
from resolver.events.actions import SandboxAction
from resolver.events.base import ActionBase, Source
from resolver.events.lifecycle import (
    ConfirmationAnswered,
    ConfirmationAsked,
)
from resolver.events.log import innermost
from resolver.events.observations import ErrorObservation
from resolver.events.state import State
from resolver.events.stream import EventStream
from resolver.models.approval import (
    ActionRule,
    PendingApproval,
    SecurityRisk,
    approval_number,
    find_rule,
)
from resolver.models.run import RunState
from resolver.security.analyzer import LLMSecurityAnalyzer
from resolver.security.invisible_text import with_invisible_shown

GATED_ACTIONS = (SandboxAction, a.McpCall)
"""The actions that are checked.

Actions that only look something up for the agent (Recall, code search) are not, nor is the start of
a delegate, whose own actions are checked one by one.
"""

APPROVAL_SECONDS = 600.0
"""Seconds that a run waits for a person's decision. After that the run ends, and can be resumed."""

MAX_SHOWN_LENGTH = 20_000
"""Maximum length of an action that a person is asked to approve, in characters.

A longer one is refused, because nobody should approve what they have not seen completely.
"""

_OWN_FIELDS = frozenset(ActionBase.model_fields) | {"kind"}

ConfirmationMode = Literal["never", "risky", "always"]
ApprovalNotifier = Callable[[PendingApproval], datetime | None]
"""Shows a pending approval to a person.

Returns the time from which it is visible, None if it could not be shown.
"""

RISKY = (SecurityRisk.HIGH, SecurityRisk.UNKNOWN)
"""The risks of actions that need approval in the mode `risky`."""


@dataclass(frozen=True)
class Confirmation:
    """Which actions of a run need the approval of a person, and how it is asked for.

    mode: no action, those of high or unknown risk, or all.
    ask: rules for actions that need approval in every mode.
    refuse: rules for actions that are never executed.
    wait: seconds that a process waits for a decision.
    analyzer: assesses the risk of an action.
    notify: shows a pending approval to a person; None if the run has nobody to ask.
    """

    mode: ConfirmationMode = "never"
    ask: tuple[ActionRule, ...] = ()
    refuse: tuple[ActionRule, ...] = ()
    wait: float = APPROVAL_SECONDS
    analyzer: LLMSecurityAnalyzer = field(default_factory=LLMSecurityAnalyzer)
    notify: ApprovalNotifier | None = None


GateDecision = Literal["allowed", "waiting"] | ErrorObservation
"""The decision about an action: it may be executed now; it waits, and the run with it; or it is
refused with this error for the agent."""


@dataclass(frozen=True)
class Gate:
    """Checks the actions of one agent's log."""

    confirmation: Confirmation
    requests: ControlRequestHandler
    stream: EventStream
    state: State

    def is_held(self, action: ActionBase) -> bool:
        """Return True if, by the log, the action waits for approval or was denied."""
        answer = self._find_answer(action)
        denied = answer is not None and not answer.approved
        return denied or self.state.run_state is RunState.AWAITING_CONFIRMATION

    def check(self, action: ActionBase) -> GateDecision:
        """Return whether the action is allowed, refused or has to wait.

        Waits for the decision of a person if the rules ask for one. Raises RunStopped if a person
        stops the run meanwhile.
        """
        if not isinstance(action, GATED_ACTIONS) or action.source is not Source.AGENT:
            return "allowed"
        answer = self._find_answer(action)
        if answer is None:
            tool, text = _tool_name(action), describe_action(action)
            refusing_rule = find_rule(self.confirmation.refuse, tool, text)
            if refusing_rule is not None:
                self.requests.end_confirmation()
                return _refuse(refusing_rule)
            rule = find_rule(self.confirmation.ask, tool, text)
            risk = self.confirmation.analyzer.security_risk(action)
            if rule is None and not self._needs_approval(risk):
                self.requests.end_confirmation()
                return "allowed"
            if len(with_invisible_shown(text)) > MAX_SHOWN_LENGTH:
                return _refuse(None)
            answer = self._ask_person(action, risk, rule, text)
        if answer is None:
            return "waiting"
        self.requests.end_confirmation()
        return "allowed" if answer.approved else _deny(answer)

    def _needs_approval(self, risk: SecurityRisk) -> bool:
        mode = self.confirmation.mode
        return mode == "always" or (mode == "risky" and risk in RISKY)

    def _find_answer(self, action: ActionBase) -> ConfirmationAnswered | None:
        for event in self.state.events[action.id + 1 :]:
            if isinstance(event, ConfirmationAnswered) and event.action == action.id:
                return event
        return None

    def _ask_person(
        self, action: ActionBase, risk: SecurityRisk, rule: ActionRule | None, text: str
    ) -> ConfirmationAnswered | None:
        """Return a person's decision after adding it to the log, None if there is none in time."""
        kind = str(getattr(action, "kind", ""))
        approval = PendingApproval(
            kind=kind,
            text=text,
            level=risk,
            rule=None if rule is None else str(rule),
            number=approval_number(action.id, kind, text),
        )
        self.requests.await_confirmation(describe_pending_approval(approval))
        asked = [
            event
            for event in self.state.events[action.id + 1 :]
            if isinstance(event, ConfirmationAsked) and event.action == action.id
        ]
        decision = None
        if asked and (earlier := asked[-1]).shown_at is not None:
            # An earlier process showed the action. This process may have been started because of
            # the decision, which is then waiting in the queue: take it without waiting.
            decision = self.requests.decision(earlier.wanted, earlier.shown_at, 0.0)
        if decision is None:
            notify = self.confirmation.notify
            shown_at = notify(approval) if notify else None
            self.stream.add(ConfirmationAsked(action=action.id, wanted=approval, shown_at=shown_at))
            # Nobody can have seen it otherwise, so no decision is about it.
            if shown_at is not None:
                decision = self.requests.decision(approval, shown_at, self.confirmation.wait)
        if decision is None:
            return None
        approved = isinstance(decision, Approve)
        reason = decision.reason or "" if isinstance(decision, Deny) else ""
        return self.stream.add(
            ConfirmationAnswered(action=action.id, approved=approved, by=decision.by, reason=reason)
        )


def pending_approval_in(state: State) -> PendingApproval | None:
    """Return the approval that the run, or a delegate of it, waits for; None if there is none."""
    if state.run_state is not RunState.AWAITING_CONFIRMATION:
        return None
    events = map(innermost, reversed(state.events))
    return next((event.wanted for event in events if isinstance(event, ConfirmationAsked)), None)


def describe_pending_approval(approval: PendingApproval) -> str:
    """Return one line that tells a person what waits, and why."""
    reason = f"{approval.level.value} risk" if approval.rule is None else approval.rule
    first_line = approval.text.strip().partition("\n")[0][:200]
    return f"waits for `approve`: {first_line} ({reason})"


def describe_action(action: ActionBase) -> str:
    """Return everything the action would do, as text for a person."""
    match action:
        case a.CmdRun(command=command, is_input=False):
            return command
        case a.IPythonRunCell(code=code):
            return code
        case _:
            fields = action.model_dump(mode="json", exclude=set(_OWN_FIELDS), exclude_none=True)
            return json.dumps(fields, indent=2, ensure_ascii=False)


def _tool_name(action: ActionBase) -> str:
    """Return the name of the tool that rules name: `SERVER/TOOL` for one of an MCP server."""
    if isinstance(action, a.McpCall):
        return f"{action.server}/{action.name}"
    return tool_name_of(action) or str(getattr(action, "kind", ""))


def _refuse(rule: ActionRule | None) -> ErrorObservation:
    """Return the refusal by a rule; without one, of an action that is too long to be shown."""
    content = render("agent/refused_action.md.j2", rule=rule).strip()
    return ErrorObservation(content=content, code="refused")


def _deny(answer: ConfirmationAnswered) -> ErrorObservation:
    content = render("agent/denied_action.md.j2", by=answer.by, reason=answer.reason).strip()
    return ErrorObservation(content=content, code="denied")
