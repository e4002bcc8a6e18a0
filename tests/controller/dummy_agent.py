"""An agent without a model, for tests of everything around agents."""

from collections.abc import Sequence

from resolver.events.actions import Finish
from resolver.events.base import ActionBase, Source
from resolver.events.lifecycle import SystemPrompt
from resolver.events.state import LogFollower, State


class DummyAgent:
    """Takes the actions of a script in order, then finishes.

    The position in the script is derived from the log, so that a resumed run continues after the
    last action that was taken.
    """

    name = "DummyAgent"

    def __init__(self, script: Sequence[ActionBase] = ()) -> None:
        self._script = tuple(script)
        self._log = LogFollower()
        self._steps_taken = 0

    def system_prompt(self) -> SystemPrompt:
        """Return a system prompt that says that there is no model."""
        return SystemPrompt(content="Scripted agent: no model is asked.")

    def step(self, state: State) -> ActionBase:
        """Return the next action of the script, `Finish` after the last one."""
        new_events, is_start = self._log.read(state)
        if is_start:
            self._steps_taken = 0
        self._steps_taken += sum(
            isinstance(event, ActionBase) and event.source is Source.AGENT for event in new_events
        )
        if self._steps_taken < len(self._script):
            return self._script[self._steps_taken]
        return Finish(message="The script is over.", task_completed=False)
