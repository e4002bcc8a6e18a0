"""Creates condensers by name from one explicit table."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from resolver.config.agent_settings import NO_CONDENSER
from resolver.memory.condensers.rules import (
    AmortizedForgetting,
    ConversationWindow,
    ObservationMasking,
    Pipeline,
    RecentEvents,
)
from resolver.memory.condensers.view import Condenser
from resolver.memory.condensers.with_model import (
    LLMAttention,
    SummaryClient,
    write_notes,
    write_structured_notes,
)

OpenClient = Callable[[], SummaryClient]
"""Returns the condenser's model, which is opened only if a condenser needs it."""

CONDENSER_FACTORIES: Mapping[str, Callable[..., Condenser]] = {
    NO_CONDENSER: lambda _: Pipeline(),
    "recent": lambda _, **parameters: RecentEvents(**parameters),
    "masking": lambda _, **parameters: ObservationMasking(**parameters),
    "amortized": lambda _, **parameters: AmortizedForgetting(**parameters),
    "window": lambda _, **parameters: ConversationWindow(**parameters),
    "summarizing": lambda open_client, **parameters: ConversationWindow(
        write_notes=partial(write_notes, open_client()), **parameters
    ),
    "structured": lambda open_client, **parameters: ConversationWindow(
        write_notes=partial(write_structured_notes, open_client()), **parameters
    ),
    "attention": lambda open_client, **parameters: LLMAttention(open_client(), **parameters),
}
"""Factories by name. `CONDENSERS` of `resolver.config.agent_settings` has the same names."""


def make_condenser(names: Sequence[str], open_client: OpenClient) -> Condenser:
    """Return the condenser that applies these in order.

    A last one is added that keeps a window of the conversation when the model reports that it
    does not fit and the others can't condense further. `none` alone has no such condenser.
    """
    condensers = [CONDENSER_FACTORIES[name](open_client) for name in names]
    is_none = all(name == NO_CONDENSER for name in names)
    return Pipeline(*condensers, *(() if is_none else (ConversationWindow(only_asked=True),)))
