"""The content of a trace: a header, then steps and notes in order. steps.py creates it.

All texts here are cleaned already (see plain.py); the renderers only lay them out.
"""

from dataclasses import dataclass, field
from typing import Literal

from resolver.models.run import RunState, Tokens
from resolver.trace.plain import money

Mood = Literal["good", "bad", "plain"]
"""Result of a step or run, which the renderers show as a colour or mark."""

Language = Literal["", "bash", "python", "diff", "json"]


@dataclass(frozen=True)
class TraceBlock:
    """A text that is shown unchanged in a fixed-width font."""

    text: str
    language: Language = ""


@dataclass(frozen=True)
class TraceStep:
    """One action with its observation.

    number: 1, 2, 3, ... as shown to a person.
    event_id, kind: of the action's event.
    verb, subject: the title. `subject` is one line of inline code and may be empty.
    thought: the model's reasoning before the action.
    words: prose in the action itself (a message, a note, the final message).
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
    words: str = ""
    action: TraceBlock | None = None
    outputs: tuple[TraceBlock, ...] = ()
    badge: str = ""
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
    def nested_steps(self) -> int:
        """Number of the nested entries that are steps."""
        return sum(isinstance(entry, TraceStep) for entry in self.nested)


@dataclass(frozen=True)
class TraceNote:
    """An event other than a step: a stage, a warning, a change of state.

    sort: `stage`, `warning`, `error`, `state`, `retry`, `network`, `memory`,
        `message`, `check` or `event`.
    detail: a longer text, shown folded.
    """

    event_id: int
    sort: str
    text: str
    detail: str = ""


Entry = TraceStep | TraceNote
"""One entry of a trace."""


@dataclass(frozen=True)
class TraceHeader:
    """Facts about the whole run.

    cost: US dollars; None if the price of a reply is unknown, and `priced` is then the sum of the
        known ones.
    parts: a line for each model and each service, where there are several.
    iterations: replies of the agents' models, as `max_iterations` counts them. One reply may lead
        to several steps or none.
    """

    run: str = ""
    title: str = ""
    request: str = ""
    repository: str = ""
    number: int | None = None
    url: str = ""
    asked_by: str = ""
    left_out: tuple[str, ...] = ()
    state: str = RunState.LOADING.value
    mood: Mood = "plain"
    reason: str = ""
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
