"""Agents that change nothing in the repository: their result is an answer, a review or places.

They answer questions about the code, review a change, use a browser, or locate the code that has
to change. Changes that they make in the sandbox are discarded.
"""

from typing import ClassVar

from resolver.agents.codeact import CodeActAgent
from resolver.agents.definitions import NO_OPTIONAL_TOOLS, AvailableTools
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.events.lifecycle import SystemPrompt
from resolver.events.state import State
from resolver.llm.base import Model
from resolver.memory.conversation import Dialect
from resolver.models.run import CodePlace


class AnsweringAgent(CodeActAgent):
    """An agent whose result is its final message. Changes to the working tree are discarded.

    Calls of tools that it does not have, and edits, are refused with a reason.

    template: template of the system prompt.
    tools: all tools of the agent.
    takes_screenshots: the agent looks at screenshots of pages, if its model accepts images.
    answers_threads: its final message has an answer for each review thread that it is asked about.
    """

    is_read_only = True
    takes_screenshots: ClassVar[bool] = False
    answers_threads: ClassVar[bool] = False
    template: ClassVar[str]
    tools: ClassVar[tuple[str, ...]]

    def __init__(
        self, model: Model, dialect: Dialect, available: AvailableTools = NO_OPTIONAL_TOOLS
    ) -> None:
        labels = available.thread_labels if self.answers_threads else ()
        super().__init__(model, dialect, AvailableTools(thread_labels=labels))
        self._tools = self.tools

    def system_prompt(self) -> SystemPrompt:
        """Return the agent's own system prompt, with its tools as text in the tag dialect."""
        return self._build_system_prompt(
            self.template,
            takes_screenshots=self.takes_screenshots,
            accepts_images=self._accepts_images,
        )


READ_ONLY = "ReadOnlyAgent"

READONLY_TOOLS = ("execute_bash", "execute_ipython_cell", "think", "plan", "finish")


class ReadOnlyAgent(AnsweringAgent):
    """Answers a question with its final message. Changes to the working tree are discarded.

    Actions that edit a file are refused with a reason.
    """

    name = READ_ONLY
    template = "agent/readonly.md.j2"
    tools = READONLY_TOOLS
    answers_threads = True


REVIEWER = "ReviewerAgent"

REVIEWER_TOOLS = (
    "execute_bash",
    "execute_ipython_cell",
    "think",
    "plan",
    "review_comment",
    "submit_review",
)


class ReviewerAgent(AnsweringAgent):
    """Writes comments and a final message that become one review.

    Changes to the working tree are discarded, and actions that edit a file are refused with a
    reason.
    """

    name = REVIEWER
    template = "agent/reviewer.md.j2"
    tools = REVIEWER_TOOLS


BROWSING_TOOLS = ("think", "finish")


class BrowsingAgent(AnsweringAgent):
    """Works on web pages by their accessibility tree, and reports.

    It has the tools of the browser's MCP server. Calls of other tools are refused with a reason.
    """

    name = "BrowsingAgent"
    tools = BROWSING_TOOLS
    template = "agent/browsing.md.j2"

    def __init__(self, model: Model, dialect: Dialect, available: AvailableTools) -> None:
        super().__init__(model, dialect, available)
        self._mcp = available.browser_tools

    def accepts_images(self, model: Model) -> bool:
        return self.takes_screenshots and model.supports_vision


class VisualBrowsingAgent(BrowsingAgent):
    """A BrowsingAgent that also looks at screenshots if its model accepts images.

    If the model does not, the system prompt says so.
    """

    name = "VisualBrowsingAgent"
    template = "agent/visual_browsing.md.j2"
    takes_screenshots = True


LOC_TOOLS = ("execute_bash", "think", "search_code", "explore_code", "report_places")

_MAX_PATH_PARTS = 40
"""Maximum number of path components of a reported place that are considered."""


class LocAgent(AnsweringAgent):
    """Reports a list of places, each checked against the base commit.

    Its edits are discarded, and calls of tools other than its own are refused with a reason.
    """

    name = "LocAgent"
    template = "agent/loc.md.j2"
    tools = LOC_TOOLS

    def __init__(self, model: Model, dialect: Dialect, available: AvailableTools) -> None:
        super().__init__(model, dialect, available)
        self._count_lines = available.count_lines

    def step(self, state: State) -> ActionBase:
        """Return the next action.

        Reported places are marked as unknown if their file or lines do not exist at the base
        commit.
        """
        action = super().step(state)
        if not isinstance(action, a.Finish):
            return action
        places = tuple(self._check_place(place) for place in action.places)
        return action.model_copy(update={"places": places})

    def _check_place(self, place: CodePlace) -> CodePlace:
        """Return the place with its path relative to the repository.

        Models also write absolute paths of the sandbox; leading folders are removed until a file
        matches.
        """
        parts = place.path.strip("/").split("/")[:_MAX_PATH_PARTS]
        start_indexes = range(len(parts) if place.path.startswith("/") else 1)
        for path in ("/".join(parts[start:]) for start in start_indexes):
            length = self._count_lines(path)
            if length is not None:
                known = (place.end or place.start or 0) <= length
                return place.model_copy(update={"path": path, "known": known})
        return place.model_copy(update={"known": False})
