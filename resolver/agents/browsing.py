"""The agents that use a browser and nothing else: by the accessibility tree alone, and by pictures
of the page beside it.
"""

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
    """Works on web pages, and reports. It sees the accessibility tree.

    What it asks for beside its tools is refused with words, and not done.
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
        """The next action, as the base has it."""
        return self._with_picture(super().step(state))

    def _with_picture(self, action: ActionBase) -> ActionBase:
        """A browser action ends with a picture on which the elements' ids are drawn."""
        if not self._sees or not isinstance(action, a.BrowseInteractive):
            return action
        if _PICTURE in action.code:
            return action
        code = f"{action.code.rstrip()}\nscreenshot(marks=True)"
        return action.model_copy(update={"code": code})


class VisualBrowsingAgent(BrowsingAgent):
    """Sees a picture of the page as well, where its model sees; else it says that it does not."""

    name = "VisualBrowsingAgent"
    template = "agent/visual_browsing.md.j2"
    visual = True
