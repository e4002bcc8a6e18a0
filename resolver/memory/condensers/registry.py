"""Creates condensers by name from one explicit table."""

from collections.abc import Callable, Mapping, Sequence

from resolver.config.agent_settings import CONDENSERS, NO_CONDENSER, CondenserStage
from resolver.memory.condensers.rules import (
    AmortizedForgetting,
    ConversationWindow,
    NoOp,
    ObservationMasking,
    Pipeline,
    RecentEvents,
)
from resolver.memory.condensers.view import Condenser
from resolver.memory.condensers.with_model import (
    FreeTextNotes,
    LLMAttention,
    StructuredNotes,
    SummaryClient,
)

OpenClient = Callable[[], SummaryClient]
"""Returns the condenser's model, which is opened only if a condenser needs it."""

CONDENSER_FACTORIES: Mapping[str, Callable[..., Condenser]] = {
    NO_CONDENSER: lambda _: NoOp(),
    "recent": lambda _, **parameters: RecentEvents(**parameters),
    "masking": lambda _, **parameters: ObservationMasking(**parameters),
    "amortized": lambda _, **parameters: AmortizedForgetting(**parameters),
    "window": lambda _, **parameters: ConversationWindow(**parameters),
    "summarizing": lambda open_client, **parameters: ConversationWindow(
        write_notes=FreeTextNotes(open_client()), **parameters
    ),
    "structured": lambda open_client, **parameters: ConversationWindow(
        write_notes=StructuredNotes(open_client()), **parameters
    ),
    "attention": lambda open_client, **parameters: LLMAttention(open_client(), **parameters),
}
"""Factories by name. `CONDENSERS` of `resolver.config.agent_settings` has the same names, with the
parameters that each accepts."""


def make_condenser(stages: Sequence[CondenserStage], open_client: OpenClient) -> Condenser:
    """Build the condenser that the stages describe.

    A last stage is added that keeps a window of the conversation when the model reports that it
    does not fit and the other stages can't condense further. `none` alone has no such stage.
    """
    condensers = [
        CONDENSER_FACTORIES[stage.name](
            open_client, **{**CONDENSERS[stage.name].defaults, **stage.parameters}
        )
        for stage in stages
    ]
    if all(stage.name == NO_CONDENSER for stage in stages):
        return NoOp()
    return Pipeline(*condensers, ConversationWindow(only_asked=True))
