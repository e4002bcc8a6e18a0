"""Creates condensers by name from one explicit table, and applies one to an agent's log."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from resolver.config.agent_settings import NO_CONDENSER, CondenserStage
from resolver.events.lifecycle import Condensation
from resolver.events.state import State
from resolver.memory.condensers.rules import (
    AmortizedForgetting,
    BrowserOutputs,
    ConversationWindow,
    Importance,
    NoOp,
    ObservationMasking,
    Pipeline,
    RecentEvents,
)
from resolver.memory.condensers.summaries import (
    FreeTextNoteWriter,
    StructuredNoteWriter,
    SummaryClient,
)
from resolver.memory.condensers.view import AgentLog, Condenser, SizeBound
from resolver.memory.condensers.with_model import LLMAttention


@dataclass(frozen=True)
class CondenserParts:
    """Holds what condensers are built from.

    open_client: returns the condenser's model, opened only if a condenser needs it.
    writes_notes: the default condenser has its summary extended by notes of that model.
    """

    bound: SizeBound
    open_client: Callable[[], SummaryClient]
    writes_notes: bool = False


def _importance(parts: CondenserParts, **parameters: int) -> Condenser:
    writer = FreeTextNoteWriter(parts.open_client()) if parts.writes_notes else None
    return Importance(parts.bound, writer, **parameters)


CONDENSER_FACTORIES: Mapping[str, Callable[..., Condenser]] = {
    NO_CONDENSER: lambda _: NoOp(),
    "recent": lambda _, **parameters: RecentEvents(**parameters),
    "masking": lambda _, **parameters: ObservationMasking(**parameters),
    "browser": lambda _, **parameters: BrowserOutputs(**parameters),
    "amortized": lambda _, **parameters: AmortizedForgetting(**parameters),
    "window": lambda parts, **parameters: ConversationWindow(parts.bound, **parameters),
    "summarizing": lambda parts, **parameters: ConversationWindow(
        parts.bound, writer=FreeTextNoteWriter(parts.open_client()), **parameters
    ),
    "attention": lambda parts, **parameters: LLMAttention(
        parts.bound, parts.open_client(), **parameters
    ),
    "structured": lambda parts, **parameters: ConversationWindow(
        parts.bound, writer=StructuredNoteWriter(parts.open_client()), **parameters
    ),
    "importance": _importance,
}
"""Factories by name. `resolver.config.agent_settings` has the same names and the parameters that
each accepts."""


def make_condenser(stages: Sequence[CondenserStage], parts: CondenserParts) -> Condenser:
    """Build the condenser that the stages describe.

    A last stage is added that keeps a window of the conversation when the model reports that it
    does not fit and the other stages can't condense further. `none` alone has no such stage.
    """
    condensers = [CONDENSER_FACTORIES[stage.name](parts, **stage.parameters) for stage in stages]
    if all(stage.name == NO_CONDENSER for stage in stages):
        return NoOp()
    return Pipeline(*condensers, ConversationWindow(parts.bound, only_asked=True))


class LogCondenser:
    """Applies a condenser to the log of one agent."""

    def __init__(self, condenser: Condenser) -> None:
        self._condenser = condenser
        self._log = AgentLog()

    def condense(self, state: State) -> Condensation | None:
        """Return a Condensation to add to the stream, or None as `Condenser.condense` does."""
        return self._condenser.condense(self._log.view(state))
