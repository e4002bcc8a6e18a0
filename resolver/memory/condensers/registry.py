"""Creates condensers by name from one explicit table, and applies one to an agent's log."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from resolver.config.condenser_names import NO_CONDENSER, CondenserStage
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
from resolver.memory.condensers.summaries import Asker, FreeNotes
from resolver.memory.condensers.view import AgentLog, Condenser, SizeBound
from resolver.memory.condensers.with_model import LLMAttention, LLMSummarizing, StructuredSummary


@dataclass(frozen=True)
class Parts:
    """Holds what condensers are built from.

    ask: returns the condenser's model, opened only if a condenser needs it.
    writes: the default condenser has its summary extended by notes of that model.
    """

    bound: SizeBound
    ask: Callable[[], Asker]
    writes: bool = False


def _importance(parts: Parts, **given: int) -> Condenser:
    writer = FreeNotes(parts.ask()) if parts.writes else None
    return Importance(parts.bound, writer, **given)


MAKERS: Mapping[str, Callable[..., Condenser]] = {
    NO_CONDENSER: lambda _: NoOp(),
    "recent": lambda _, **given: RecentEvents(**given),
    "masking": lambda _, **given: ObservationMasking(**given),
    "browser": lambda _, **given: BrowserOutputs(**given),
    "amortized": lambda _, **given: AmortizedForgetting(**given),
    "window": lambda parts, **given: ConversationWindow(parts.bound, **given),
    "summarizing": lambda parts, **given: LLMSummarizing(parts.bound, parts.ask(), **given),
    "attention": lambda parts, **given: LLMAttention(parts.bound, parts.ask(), **given),
    "structured": lambda parts, **given: StructuredSummary(parts.bound, parts.ask(), **given),
    "importance": _importance,
}
"""Factories by name. `resolver.config.condenser_names` has the same names and the parameters that
each accepts."""


def make_condenser(stages: Sequence[CondenserStage], parts: Parts) -> Condenser:
    """Build the condenser that the stages describe.

    A last stage is added that keeps a window of the conversation when the model reports that it
    does not fit and the other stages can't condense further. `none` alone has no such stage.
    """
    made = [MAKERS[stage.name](parts, **stage.parameters) for stage in stages]
    if all(stage.name == NO_CONDENSER for stage in stages):
        return NoOp()
    return Pipeline(*made, ConversationWindow(parts.bound, only_asked=True))


class Condensing:
    """Applies a condenser to the log of one agent."""

    def __init__(self, condenser: Condenser) -> None:
        self._condenser = condenser
        self._log = AgentLog()

    def condense(self, state: State) -> Condensation | None:
        """Return a Condensation to add to the stream, or None as `Condenser.condense` does."""
        return self._condenser.condense(self._log.view(state))
