"""The interface of agents."""

from typing import Protocol

from resolver.events.base import ActionBase
from resolver.events.lifecycle import SystemPrompt
from resolver.events.state import State


class Agent(Protocol):
    """Returns the next action for a state, without side effects of its own."""

    @property
    def name(self) -> str:
        """Name of the agent in the registry and in the log."""
        ...

    def system_prompt(self) -> SystemPrompt:
        """Return the system prompt for the log, as an event without an id."""
        ...

    def step(self, state: State) -> ActionBase:
        """Return the next action. Raises ModelError if the model can't be reached."""
        ...
