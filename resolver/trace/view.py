"""The content of a trace: a header, then steps and notes in order. steps.py creates it.

Notes are events that are not steps: stages, warnings, changes of state, and so on. All texts here
are cleaned already (see plain.py); the renderers only lay them out.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import EventBase
from resolver.events.log import Event, Unknown
from resolver.events.state import ModelMetrics, State
from resolver.models.run import PlanItem, RunState, Tokens
from resolver.models.verification import VerificationEvidence
from resolver.trace.plain import clean, duration, money, one_line, plural

Mood = Literal["good", "bad", "plain"]
"""Result of a step or run, which the renderers show as a colour or mark."""

Language = Literal["bash", "python", "diff", "json"]


@dataclass(frozen=True)
class TraceBlock:
    """A text that is shown unchanged in a fixed-width font."""

    text: str
    language: Language | None = None


@dataclass(frozen=True)
class TraceStep:
    """One action with its observation.

    number: 1, 2, 3, ... as shown to a person.
    event_id, kind: of the action's event.
    verb, subject: the title. `subject` is one line of inline code and may be empty.
    thought: the model's reasoning before the action.
    prose: text in the action itself (a message, a note, the final message).
    action: what was requested, if the title does not hold all of it.
    outputs: texts of the observation.
    badge, mood: the result in a word or two, such as `exit code 1`.
    seconds: duration in the sandbox; None if it was not measured.
    cost, tokens: of the reply that the step came from, only on the first of its steps.
    images: data: URLs of raster images.
    nested: what the delegate did, if the step has delegated work.
    """

    number: int
    event_id: int
    kind: str
    verb: str
    subject: str = ""
    thought: str = ""
    prose: str = ""
    action: TraceBlock | None = None
    outputs: tuple[TraceBlock, ...] = ()
    badge: str | None = None
    mood: Mood = "plain"
    seconds: float | None = None
    cost: float | None = None
    tokens: Tokens | None = None
    images: tuple[str, ...] = ()
    nested: "tuple[Entry, ...]" = ()

    @property
    def title(self) -> str:
        """The title as one line of plain text."""
        return f"{self.verb} `{self.subject}`" if self.subject else self.verb

    @property
    def measures(self) -> tuple[str, ...]:
        """Its duration and its cost, as far as they are known, for display."""
        seconds = (duration(self.seconds),) if self.seconds is not None else ()
        return (*seconds, money(self.cost)) if self.cost else seconds

    @property
    def nested_steps(self) -> int:
        """Number of the nested entries that are steps."""
        return sum(isinstance(entry, TraceStep) for entry in self.nested)


@dataclass(frozen=True)
class TraceNote:
    """An event other than a step: a stage, a warning, a change of state.

    category: `stage`, `warning`, `error`, `state`, `retry`, `network`, `memory`,
        `message`, `check` or `event`.
    detail: a longer text, shown folded.
    """

    event_id: int
    category: str
    text: str
    detail: str | None = None


Entry = TraceStep | TraceNote
"""One entry of a trace."""


def detail_label(note: TraceNote) -> str:
    """Return the name of a note's detail."""
    return "Details" if note.category in {"check", "opinion"} else "Text"


@dataclass(frozen=True)
class TraceHeader:
    """Facts about the whole run.

    cost: US dollars; None if the price of a reply is unknown, and `priced` is then the sum of the
        known ones.
    verdict: of the newest verification; None if there is none.
    evidence: what the checks of the newest verification show, one finding each.
    parts: a line for each model and each service, where there are several.
    iterations: replies of the agents' models, as `max_iterations` counts them. One reply may lead
        to several steps or none.
    plan: the last version of the agent's plan.
    """

    run: str = ""
    title: str = ""
    request: str = ""
    repository: str = ""
    number: int | None = None
    url: str | None = None
    requested_by: str = ""
    left_out: tuple[str, ...] = ()
    state: str = RunState.LOADING.value
    mood: Mood = "plain"
    reason: str = ""
    verdict: str | None = None
    evidence: tuple[str, ...] = ()
    closing: str = ""
    model: str = ""
    agent: str = ""
    runtime: str = ""
    version: str = ""
    base: str = ""
    started: str = ""
    cost: float | None = 0.0
    priced: float = 0.0
    parts: tuple[str, ...] = ()
    tokens: Tokens = field(default_factory=Tokens)
    iterations: int = 0
    seconds: float = 0.0
    plan: tuple[PlanItem, ...] = ()

    @property
    def issue(self) -> str:
        """The issue or pull request as GitHub writes it; "" if there is no repository."""
        return self.repository + (f"#{self.number}" if self.number else "")

    @property
    def price(self) -> str:
        """The cost for display, even if a part of it is unknown."""
        if self.cost is None and self.priced > 0:
            return f"at least {money(self.priced)}"
        return money(self.cost)


@dataclass(frozen=True)
class TraceView:
    """The whole content of a trace, in order."""

    header: TraceHeader
    entries: tuple[Entry, ...]


def cost_parts(state: State) -> tuple[str, ...]:
    """Return one line per model and one per service, where there are several; else none."""
    return (*_lines(state.metrics), *_lines(state.services))


def _lines(metrics: Mapping[str, ModelMetrics]) -> tuple[str, ...]:
    if len(metrics) < 2:
        return ()
    return tuple(f"{one_line(name)}: {_model_cost(usage)}" for name, usage in metrics.items())


def _model_cost(metrics: ModelMetrics) -> str:
    cost = money(metrics.priced if metrics.cost is not None or metrics.priced else None)
    prefix = "at least " if metrics.cost is None and metrics.priced else ""
    replies = f"{metrics.calls:,} {'reply' if metrics.calls == 1 else 'replies'}"
    return f"{prefix}{cost} for {replies}, {plural(metrics.tokens.output, 'token')} out"


MAX_NOTE_LENGTH = 300
"""Maximum number of characters of a note's text; a longer one goes into its detail."""


def note_of(event: Event) -> TraceNote | None:
    """Return the note for an event that is not a step; None if it has nothing to show."""
    category, text, detail = _describe_event(event)
    if category is None:
        return None
    line = one_line(text, MAX_NOTE_LENGTH)
    cleaned = clean(text).strip()
    return TraceNote(
        event.id, category, line, clean(detail).strip() or (None if cleaned == line else cleaned)
    )


def _describe_event(event: Event) -> tuple[str | None, str, str]:
    """Return category, text and detail; no category if the event has nothing to show."""
    match event:
        case life.RunStarted() | o.Null():
            return None, "", ""
        case life.SystemPrompt():
            return "message", "System prompt", event.content
        case a.Message():
            return "message", "Message to the agent", event.content
        case life.StageCompleted():
            duration_suffix = f" ({duration(event.seconds)})" if event.seconds else ""
            return "stage", f"{event.stage}{duration_suffix}{_after_colon(event.detail)}", ""
        case life.Egress():
            return _describe_connection(event)
        case life.CheckExecuted() | life.VerificationCompleted():
            return _describe_verification(event)
        case life.Warned():
            return "warning", event.message or event.about, ""
        case life.ModelRetried() | life.ModelSwitched():
            return "retry", _describe_retry(event), ""
        case life.ModelReplied():
            return "event", "The model replied, and the reply led to no action", _reply_text(event)
        case life.ServiceReplied():
            message = event.completion.text or event.completion.reasoning
            return "event", f"The model answered the {event.service}", message
        case life.Condensation():
            return "memory", _describe_condensation(event), _condensation_detail(event)
        case life.Resumed():
            requester = f", requested by {event.by}" if event.by else ""
            text = f"The run continues as {event.run}{requester}{_after_colon(event.reason)}"
            return "state", text, ""
        case life.LimitsExtended():
            return "state", _describe_limits(event), ""
        case life.DelegateEvent():
            return "event", f"An event of a delegate: {event.event.get('kind', '')}", ""
        case life.ConfirmationAsked() | life.ConfirmationAnswered():
            return _describe_approval(event)
        case life.ReplayDiverged():
            comparison = f"recorded:\n{event.recorded}\n\nfound:\n{event.found}"
            location = f"the {event.field} of event {event.recorded_id}"
            return "warning", f"The replay differs from the recording in {location}", comparison
        case o.AgentStateChanged():
            state = event.state.value.replace("_", " ")
            return "state", f"{state}{_after_colon(event.reason)}", ""
        case a.CondensationRequest():
            return "memory", "The conversation no longer fits", ""
        case o.ErrorObservation():
            return "error", event.content or event.code or "error", ""
        case Unknown():
            text = f"An event of an unknown kind, {event.kind}"
            return "event", text, as_json(unknown_fields(event))
        case _:
            content = str(getattr(event, "content", ""))
            return "event", str(event.kind).replace("_", " "), content


def _describe_retry(event: life.ModelRetried | life.ModelSwitched) -> str:
    service = _asking_service(event)
    if isinstance(event, life.ModelRetried):
        wait = f"attempt {event.attempt}, after {duration(event.wait)}"
        return f"The model call was retried{service} ({wait}): {event.reason}"
    models = f"{event.to_model} is used{service} instead of {event.from_model}"
    return f"From here on, {models}: {event.reason}"


_COMMAND_CHARACTERS = 72
"""Length at which the command of a check is truncated: it may name many tests."""

_TREES = {
    "base": "without the change",
    "base_with_tests": "without the change, with its tests",
    "head": "with the change",
    "head_with_base_tests": "with the change, with the tests from before",
}


def _describe_verification(
    event: life.CheckExecuted | life.VerificationCompleted,
) -> tuple[str, str, str]:
    """Return which check was executed where and how it ended, or what all of them show."""
    if isinstance(event, life.VerificationCompleted):
        sent = ", so the agent gets the output" if event.sent_to_agent else ""
        return "check", f"{describe_verdict(event.evidence)}{sent}", _evidence_lines(event)
    done = event.execution
    ended = "did not end in time" if done.exit_code is None else f"exit code {done.exit_code}"
    if done.cases:
        failed = done.count("failed", "error")
        ended += f", {done.count('passed')} passed" + (f", {failed} failed" if failed else "")
    took = "from an earlier run" if event.is_cached else duration(done.seconds)
    again = ", again" if event.repetition else ""
    command = one_line(event.command, _COMMAND_CHARACTERS)
    text = f"{command} {_TREES[event.at]}{again}: {ended} ({took})"
    whole = "" if command == event.command else f"$ {event.command}\n"
    return "check", text, whole + done.output


def describe_verdict(evidence: VerificationEvidence) -> str:
    """Return the verdict with its reason."""
    verdict = evidence.verdict.replace("_", " ").capitalize()
    return verdict + _after_colon((evidence.reason or "").replace("_", " "))


def _evidence_lines(event: life.VerificationCompleted) -> str:
    return "\n".join(evidence_of(event))


def evidence_of(event: life.VerificationCompleted) -> list[str]:
    """Return what the checks show, one finding each."""
    evidence = event.evidence
    lines = [f"Not verified: {evidence.lacks.text}"] if evidence.lacks else []
    lines += [f"Fails without the change and passes with it: {t}" for t in evidence.reproduction]
    for check in evidence.checks:
        lines += [f"Broken: {test}" for test in check.broken]
        lines += [f"Did not run with the change: {test}" for test in check.missing]
        lines += [f"Expects the former behavior: {test}" for test in check.former]
        lines += [f"New and failing: {test}" for test in check.failing]
        lines += [f"Fails with and without the change: {test}" for test in check.known]
        lines += [
            f"Flaky: {test.id} (passed {test.passed} times, failed {test.failed})"
            for test in check.flaky
        ]
    for point in evidence.review:
        lines.append(
            f"A person must look ({point.kind.replace('_', ' ')}): {point.path or 'tests'}"
        )
    lines += [f"Not executed: {omission.command}. {omission.reason}" for omission in event.omitted]
    return lines


def _describe_condensation(event: life.Condensation) -> str:
    parts = []
    if event.forgotten or not event.masked:
        parts.append(f"{plural(len(event.forgotten), 'event')} removed")
    if event.masked:
        parts.append(f"only the end of {plural(len(event.masked), 'output')} shown from here on")
    return f"The conversation was shortened: {', '.join(parts)}"


def _condensation_detail(event: life.Condensation) -> str:
    """Return what replaces the forgotten events, with a model's notes marked as such."""
    notes = f"Notes by a model:\n{event.notes}" if event.notes else ""
    return "\n\n".join(part for part in (event.summary, notes) if part)


def _describe_connection(event: life.Egress) -> tuple[str, str, str]:
    connection = f"{event.connections} connections" if event.connections > 1 else "Connection"
    where = f"{connection} to {event.host}:{event.port}"
    if not event.allowed:
        return "warning", f"{where} refused{_after_colon(event.reason)}", ""
    traffic = f"{event.bytes_sent:,} bytes out, {event.bytes_received:,} in"
    duration_suffix = f", {duration(event.seconds)}" if event.seconds else ""
    return "network", f"{where} ({traffic}{duration_suffix}){_after_colon(event.reason)}", ""


def _describe_approval(
    event: life.ConfirmationAsked | life.ConfirmationAnswered,
) -> tuple[str, str, str]:
    match event:
        case life.ConfirmationAsked(wanted=approval, shown_at=shown_at):
            subject = "A person is" if shown_at else "Nobody could be"
            return "state", f"{subject} asked about {approval.kind}", approval.text
        case life.ConfirmationAnswered(approved=approved, by=by, reason=reason):
            verb = "approved" if approved else "denied"
            return "state", f"{by or 'The operator'} {verb} it{_after_colon(reason)}", ""


def _describe_limits(event: life.LimitsExtended) -> str:
    limits = event.limits
    description = (
        f"{plural(limits.max_iterations, 'iteration')}, {money(limits.max_budget)}, "
        f"{duration(limits.max_time)}"
    )
    return f"Limits{f' extended by {event.by}' if event.by else ''}: {description} in all"


def _after_colon(text: str | None) -> str:
    return f": {text}" if text else ""


def _asking_service(event: life.ModelRetried | life.ModelSwitched) -> str:
    return "" if event.service == life.AGENT else f" by the {event.service}"


def _reply_text(event: life.ModelReplied) -> str:
    return event.completion.text or event.completion.reasoning


def unknown_fields(event: EventBase) -> dict[str, Any]:
    """Return the fields of an event that its type does not define."""
    return {name: value for name, value in (event.model_extra or {}).items() if name != "content"}


def as_json(value: object) -> str:
    """Return data as indented JSON; "" for empty data, and a remark if it is nested too deeply."""
    if not value:
        return ""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, default=str, skipkeys=True)
    except (RecursionError, ValueError):
        return "(nested too deeply to be shown)"
