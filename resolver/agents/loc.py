"""The agent that locates the code that has to change. It searches, reads, and reports places."""

from collections.abc import Callable

from resolver.agents.answering import AnsweringAgent
from resolver.agents.tool_access import refuse_unavailable
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.events.state import State
from resolver.llm.base import Model
from resolver.memory.conversation import Dialect
from resolver.models.run import CodePlace

TOOLS = ("execute_bash", "think", "search_code", "explore_code", "report_places")

_MOST_FOLDERS = 40
"""Maximum number of path components of a reported place that are considered."""

_EXAMPLES = {
    "search": a.CodeSearch(terms=("Parser.parse", "src/parser.py:41", "empty part between dots")),
    "explore": a.CodeExplore(
        start=("src/parser.py::Parser.parse",), direction="upstream", depth=2, edges=("calls",)
    ),
    "bash": a.CmdRun(command="git log --oneline -5 -- src/parser.py && sed -n 40,80p setup.cfg"),
    "think": a.Think(content="Both callers pass None here, so the guard belongs in parse()."),
    "report": a.Finish(
        message="`parse('1..2')` keeps the empty part between two dots.",
        places=(
            CodePlace(path="src/parser.py", start=41, end=48, symbol="Parser.parse",
                  why="splits at each dot and keeps what is empty"),
            CodePlace(path="tests/test_parser.py", start=12, end=30, symbol="test_dots",
                  why="has no case with two dots"),
        ),
    ),
}  # fmt: skip


class LocAgent(AnsweringAgent):
    """Reports a list of places, each checked against the base commit.

    Its edits are discarded, and calls of tools other than its own are refused with a reason.

    lines_of: returns the number of lines of a file at the base commit, None if there is no such
    file.
    """

    name = "LocAgent"
    template = "agent/loc.md.j2"
    tools = TOOLS
    examples = _EXAMPLES

    def __init__(
        self, model: Model, dialect: Dialect, lines_of: Callable[[str], int | None]
    ) -> None:
        super().__init__(model, dialect)
        self._lines_of = lines_of

    def step(self, state: State) -> ActionBase:
        """Return the next action.

        Reported places are marked as unknown if their file or lines do not exist at the base
        commit. A completed report without places is refused.
        """
        action = super().step(state)
        if not isinstance(action, a.Finish):
            return action
        if action.task_completed and not action.places:
            return refuse_unavailable(action, self._names())
        places = tuple(self._checked(place) for place in action.places)
        return action.model_copy(update={"places": places})

    def _checked(self, place: CodePlace) -> CodePlace:
        """Return the place with its path relative to the repository.

        Models also write absolute paths of the sandbox; leading folders are removed until a file
        matches.
        """
        parts = place.path.strip("/").split("/")[:_MOST_FOLDERS]
        starts = range(len(parts) if place.path.startswith("/") else 1)
        for path in ("/".join(parts[start:]) for start in starts):
            length = self._lines_of(path)
            if length is not None:
                known = (place.end or place.start or 0) <= length
                return place.model_copy(update={"path": path, "known": known})
        return place.model_copy(update={"known": False})
