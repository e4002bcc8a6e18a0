"""Tests of LocAgent: its tools, refusals and report."""

import json

from resolver.agents.base import Agent
from resolver.agents.definitions import AvailableTools
from resolver.agents.registry import make_agent
from resolver.events import actions as a
from resolver.events.state import State
from resolver.llm.replay import ReplayModel
from resolver.memory.conversation import Dialect
from resolver.models.run import Completion, RequestedToolCall

LINES = {"src/a.py": 10, "empty.py": 0}


def agent(*replies: Completion, dialect: Dialect = "tools") -> Agent:
    offer = AvailableTools(index=True, count_lines=LINES.get)
    return make_agent("LocAgent", ReplayModel(list(replies)), dialect, offer)


def called(tool: str, **arguments: object) -> Completion:
    call = RequestedToolCall(id="c1", name=tool, arguments=json.dumps(arguments))
    return Completion(model="m", tool_calls=(call,))


def test_reported_places_are_checked_against_the_base() -> None:
    given = [
        {"path": "src/a.py", "start": 3, "end": 10, "why": "x"},
        {"path": "src/a.py", "start": 3, "end": 11, "why": "x"},
        {"path": "src/b.py", "why": "x"},
        {"path": "empty.py", "why": "x"},
        {"path": "src/a.py", "start": 9, "known": True, "why": "x"},
        {"path": "/workspace/src/a.py", "start": 9, "why": "x"},
    ]
    action = agent(called("report_places", message="m", places=given)).step(State())
    assert isinstance(action, a.Finish)
    assert [place.known for place in action.places] == [True, False, False, True, True, True]
    assert action.places[-1].path == "src/a.py"
