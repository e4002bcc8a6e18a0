"""The content of a trace: a header, then steps and notes in order. steps.py creates it.

Notes are events that are not steps: stages, warnings, changes of state, and so on. All texts here
are cleaned already (see plain.py); the renderers only lay them out.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from resolver.config.templates import render, template_values
from resolver.events.base import EventBase
from resolver.events.lifecycle import VerificationCompleted
from resolver.events.log import Event, Unknown
from resolver.events.state import State
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
    verb, subject: the title. `subject` is one line of inline code; None if the verb says all.
    thought: the model's reasoning before the action; None for none.
    prose: text in the action itself (a message, a note, the final message); None for none.
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
    subject: str | None = None
    thought: str | None = None
    prose: str | None = None
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
    def plain_title(self) -> str:
        """The title without markup."""
        return f"{self.verb} {self.subject}" if self.subject else self.verb

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

    @property
    def detail_label(self) -> str:
        """Name of the detail."""
        return "Details" if self.category == "check" else "Text"


Entry = TraceStep | TraceNote
"""One entry of a trace."""


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

    run: str | None = None
    title: str | None = None
    request: str | None = None
    repository: str | None = None
    number: int | None = None
    url: str | None = None
    requested_by: str | None = None
    left_out: tuple[str, ...] = ()
    state: str = RunState.LOADING.value
    mood: Mood = "plain"
    reason: str | None = None
    verdict: str | None = None
    evidence: tuple[str, ...] = ()
    closing: str | None = None
    model: str | None = None
    agent: str | None = None
    runtime: str | None = None
    version: str | None = None
    base: str | None = None
    started: str | None = None
    cost: float | None = 0.0
    priced: float = 0.0
    parts: tuple[str, ...] = ()
    tokens: Tokens = field(default_factory=Tokens)
    iterations: int = 0
    seconds: float = 0.0
    plan: tuple[PlanItem, ...] = ()

    @property
    def issue(self) -> str | None:
        """The issue or pull request as GitHub writes it; None if there is no repository."""
        return f"{self.repository}#{self.number}" if self.number else self.repository

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
    values = {"one_line": one_line, "money": money, "plural": plural}
    return tuple(render("trace/costs.txt.j2", state=state, **values).splitlines())


MAX_NOTE_LENGTH = 300
"""Maximum number of characters of a note's text; a longer one goes into its detail."""


def note_of(event: Event) -> TraceNote | None:
    """Return the note for an event that is not a step; None if it has nothing to show."""
    unknown = as_json(unknown_fields(event)) if isinstance(event, Unknown) else None
    values = {"verdict": describe_verdict, "findings": evidence_of, "one_line": one_line}
    formats = {"duration": duration, "money": money, "plural": plural}
    note = template_values("trace/note.txt.j2", event=event, unknown=unknown, **values, **formats)
    if note["category"] is None:
        return None
    line, cleaned = one_line(note["text"], MAX_NOTE_LENGTH), clean(note["text"]).strip()
    detail = clean(note["detail"]).strip() or (None if cleaned == line else cleaned)
    return TraceNote(event.id, note["category"], line, detail)


def describe_verdict(evidence: VerificationEvidence) -> str:
    """Return the verdict with its reason."""
    verdict = evidence.verdict.replace("_", " ").capitalize()
    return f"{verdict}: {evidence.reason.replace('_', ' ')}" if evidence.reason else verdict


def evidence_of(event: VerificationCompleted) -> list[str]:
    """Return what the checks show, one finding each."""
    return render("trace/findings.txt.j2", event=event).splitlines()


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
