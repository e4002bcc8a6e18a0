"""Tests of the agent that answers questions: its tools and refusals."""

from resolver.agents.registry import make_agent
from resolver.agents.tags import write_tags
from resolver.events import actions as a
from resolver.events.state import State
from resolver.llm.replay import ReplayModel
from resolver.models.run import Completion


def test_no_tool_that_edits_is_offered() -> None:
    tools = make_agent("ReadOnlyAgent", ReplayModel([]), "tools").system_prompt().tools
    assert "str_replace_editor" not in tools
    assert {"execute_bash", "finish"} <= set(tools)


def test_an_edit_is_refused_with_a_reason() -> None:
    text = write_tags(a.FileWrite(path="a.py", content="x = 1\n"))
    model = ReplayModel([Completion(model="m", text=text)])
    action = make_agent("ReadOnlyAgent", model, "tags").step(State())
    assert isinstance(action, a.Invalid)
    assert "not one of your tools" in action.reason
