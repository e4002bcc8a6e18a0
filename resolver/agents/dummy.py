"""An agent without a model, for tests of everything around an agent."""

from collections.abc import Sequence

from resolver.events.actions import Finish
from resolver.events.base import ActionBase, Source
from resolver.events.lifecycle import SystemPrompt
from resolver.events.log import Event
from resolver.events.state import State


class DummyAgent:
    """Takes the actions of a script in order, then finishes.

    The position in the script is derived from the log, so that a resumed run continues after the
    last action that was taken.
    """

    name = "DummyAgent"

    def __init__(self, script: Sequence[ActionBase] = ()) -> None:
        self._script = tuple(script)
        self._seen: list[Event] = []
        self._taken = 0
        self._count = 0

    def system_prompt(self) -> SystemPrompt:
        """Return a system prompt that says that there is no model."""
        return SystemPrompt(content="Scripted agent: no model is asked.")

    def step(self, state: State) -> ActionBase:
        """Return the next action of the script, `Finish` after the last one."""
        if state.events is not self._seen or len(state.events) < self._count:
            self._seen, self._taken, self._count = state.events, 0, 0
        new = state.events[self._count :]
        self._taken += sum(isinstance(e, ActionBase) and e.source is Source.AGENT for e in new)
        self._count = len(state.events)
        if self._taken < len(self._script):
            return self._script[self._taken]
        return Finish(message="The script is over.", task_completed=False)
