"""The agents by name, in one explicit table."""

from collections.abc import Callable
from typing import Literal

from resolver.agents.base import Agent
from resolver.agents.browsing import BrowsingAgent, VisualBrowsingAgent
from resolver.agents.codeact import CodeActAgent
from resolver.agents.dummy import DummyAgent
from resolver.agents.offer import NOTHING, Offer
from resolver.agents.readonly import READ_ONLY, ReadOnlyAgent
from resolver.errors import UsageError
from resolver.llm.base import Model
from resolver.memory.conversation import ConversationMemory, Dialect


def make_agent(
    name: str,
    model: Model,
    dialect: Literal["auto", "tools", "tags"],
    offer: Offer = NOTHING,
) -> Agent:
    """The agent of that name. Raises UsageError that lists the known ones.

    dialect: "auto" takes native tool calls where the model has them.
    """
    make = AGENTS.get(name)
    if make is None:
        raise UsageError(f"there is no agent {name!r}", f"the agents are: {', '.join(AGENTS)}")
    return make(model, choose_dialect(model, dialect), offer)


def choose_dialect(model: Model, wanted: Literal["auto", "tools", "tags"]) -> Dialect:
    """How this model acts."""
    if wanted == "auto":
        return "tools" if model.supports_tools else "tags"
    return wanted


def _code_act(model: Model, dialect: Dialect, offer: Offer) -> Agent:
    memory = ConversationMemory(dialect, sees_images=model.supports_vision)
    return CodeActAgent(model, memory, dialect, offer)


def _browsing(model: Model, dialect: Dialect, offer: Offer) -> Agent:
    _need_browser(offer)
    return BrowsingAgent(model, dialect)


def _visual(model: Model, dialect: Dialect, offer: Offer) -> Agent:
    _need_browser(offer)
    return VisualBrowsingAgent(model, dialect)


def _need_browser(offer: Offer) -> None:
    if not offer.browser:
        raise UsageError(
            "the sandbox has no browser, so a browsing agent could do nothing",
            "use an image with chromium (see docs/browser.md), or another agent",
        )


def _read_only(model: Model, dialect: Dialect, offer: Offer) -> Agent:  # noqa: ARG001
    return ReadOnlyAgent(model, dialect)


def _dummy(model: Model, dialect: Dialect, offer: Offer) -> Agent:  # noqa: ARG001
    return DummyAgent()  # it asks no model


AGENTS: dict[str, Callable[[Model, Dialect, Offer], Agent]] = {
    "CodeActAgent": _code_act,
    "BrowsingAgent": _browsing,
    "VisualBrowsingAgent": _visual,
    READ_ONLY: _read_only,
    "DummyAgent": _dummy,
}
