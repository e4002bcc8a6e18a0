"""What an agent is: something that looks at the state and says what to do next."""

from typing import Protocol

from resolver.events.base import ActionBase
from resolver.events.lifecycle import SystemPrompt
from resolver.events.state import State


class Agent(Protocol):
    """Feed it the state, get the next action. It changes nothing by itself."""

    @property
    def name(self) -> str:
        """Name in the registry and in the log."""
        ...

    def system_prompt(self) -> SystemPrompt:
        """The words it works under, for the log; not yet numbered."""
        ...

    def step(self, state: State) -> ActionBase:
        """The next action. Raises ModelError when the model can't be reached."""
        ...
