"""An agent without a model: it does what its script says, then finishes."""

from collections.abc import Sequence

from resolver.events.actions import Finish
from resolver.events.base import ActionBase, Source
from resolver.events.lifecycle import SystemPrompt
from resolver.events.log import Event
from resolver.events.state import State


class DummyAgent:
    """For trying out everything around an agent.

    script: the actions to take, in order. Where it stands is read off the log, so a resumed run
    goes on behind the last action that was taken.
    """

    name = "DummyAgent"

    def __init__(self, script: Sequence[ActionBase] = ()) -> None:
        self._script = tuple(script)
        self._seen: list[Event] = []
        self._taken = 0
        self._count = 0

    def system_prompt(self) -> SystemPrompt:
        """Says that there is no model."""
        return SystemPrompt(content="Scripted agent: no model is asked.")

    def step(self, state: State) -> ActionBase:
        """The next action of the script; Finish when it is over."""
        if state.events is not self._seen or len(state.events) < self._count:
            self._seen, self._taken, self._count = state.events, 0, 0
        new = state.events[self._count :]
        self._taken += sum(isinstance(e, ActionBase) and e.source is Source.AGENT for e in new)
        self._count = len(state.events)
        if self._taken < len(self._script):
            return self._script[self._taken]
        return Finish(message="The script is over.", task_completed=False)
