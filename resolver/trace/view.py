"""What a trace shows: a header, and steps and notes in order. Made in steps.py.

All texts in here are cleaned already (plain.py); the renderers only lay them out.
"""

from dataclasses import dataclass, field
from typing import Literal

from resolver.models.run import RunState, Tokens
from resolver.trace.plain import money

Mood = Literal["good", "bad", "plain"]
Language = Literal["", "bash", "python", "diff", "json"]


@dataclass(frozen=True)
class TraceBlock:
    """A piece of text that is shown as it is, in a fixed-width font."""

    text: str
    language: Language = ""


@dataclass(frozen=True)
class TraceStep:
    """One action with its observation.

    number: 1, 2, 3, ... as shown to a person.
    verb, subject: the title; `subject` is in code type, one line, may be empty.
    words: prose that the action itself says (a message, a note, the closing words).
    action: what was to be done, when the title does not hold it all.
    outputs: what came of it.
    badge, mood: the result in a word or two, like `exit code 1`.
    seconds: how long the sandbox took; None when it was not measured.
    cost, tokens: of the reply the step came from, on the first of its steps only.
    images: data: URLs of raster images.
    nested: what the delegate did, when the step has handed work to one.
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
        """How many of the nested entries are steps."""
        return sum(isinstance(entry, TraceStep) for entry in self.nested)


@dataclass(frozen=True)
class TraceNote:
    """Something that happened beside the steps: a stage, a warning, a change of state.

    sort: `stage`, `warning`, `error`, `state`, `retry`, `network`, `memory`, `message` or
        `event`.
    detail: a longer text, shown folded.
    """

    event_id: int
    sort: str
    text: str
    detail: str = ""


Entry = TraceStep | TraceNote


@dataclass(frozen=True)
class TraceHeader:
    """What the whole run was.

    cost: US dollars; None when the price of a reply is not known, and `priced` is then the rest.
    parts: a line for each model and each service, where there are several. iterations: replies of
    the agents' models, as `max_iterations` counts them; one reply may take several steps or none.
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
        """The cost for a person, also when a part of it is not known."""
        if self.cost is None and self.priced > 0:
            return f"at least {money(self.priced)}"
        return money(self.cost)


@dataclass(frozen=True)
class TraceView:
    """All that a trace shows, in order."""

    header: TraceHeader
    entries: tuple[Entry, ...]
