"""Agents that use only a browser: one by the accessibility tree, one by screenshots as well."""

from typing import Any

from resolver.agents.answering import AnsweringAgent
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.events.state import State
from resolver.llm.base import Model

TOOLS = ("think", "browser", "finish")

_EXAMPLES = {
    "browse": a.BrowseInteractive(code="goto('http://127.0.0.1:8000/login')"),
    "steps": a.BrowseInteractive(code="fill('12', 'alice')\nclick('15')"),
    "think": a.Think(content="The form was sent, but the list still has two rows: look for why."),
    "report": a.Finish(message="After logging in, the page says 'Welcome, alice'. ..."),
}
_PICTURE = "screenshot("


class BrowsingAgent(AnsweringAgent):
    """Works on web pages by their accessibility tree, and reports.

    Calls of tools other than its own are refused with a reason.
    """

    name = "BrowsingAgent"
    tools = TOOLS
    examples = _EXAMPLES
    template = "agent/browsing.md.j2"
    visual = False

    def looks(self, model: Model) -> bool:
        return self.visual and model.supports_vision

    def _further_words(self) -> dict[str, Any]:
        return {"visual": self.visual, "sees": self._sees}

    def step(self, state: State) -> ActionBase:
        """Return the next action, extended by a screenshot if the agent is shown images."""
        return self._with_picture(super().step(state))

    def _with_picture(self, action: ActionBase) -> ActionBase:
        """Append a screenshot with the ids of the elements drawn on it to a browser action."""
        if not self._sees or not isinstance(action, a.BrowseInteractive):
            return action
        if _PICTURE in action.code:
            return action
        code = f"{action.code.rstrip()}\nscreenshot(marks=True)"
        return action.model_copy(update={"code": code})


class VisualBrowsingAgent(BrowsingAgent):
    """A BrowsingAgent that also gets screenshots if its model accepts images.

    If the model does not, the system prompt says so.
    """

    name = "VisualBrowsingAgent"
    template = "agent/visual_browsing.md.j2"
    visual = True
