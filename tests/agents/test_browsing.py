"""Tests of the agents that use only a browser."""

import pytest

from resolver.agents.definitions import AvailableTools
from resolver.agents.registry import make_agent
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.lifecycle import ModelReplied
from resolver.events.state import State
from resolver.models.run import Completion, McpTool, RequestedToolCall
from tests.agents.test_codeact import ListeningModel

PICTURE = "data:image/jpeg;base64,AAAA"
NAVIGATE = RequestedToolCall(id="c", name="browser__browser_navigate", arguments='{"url": "x"}')
REPLY = Completion(model="m", tool_calls=(NAVIGATE,))
TOOLS = AvailableTools(mcp=(McpTool(server="browser", name="browser_navigate"),))


@pytest.mark.parametrize(
    ("name", "sees", "is_sent"),
    [
        ("VisualBrowsingAgent", True, True),
        ("VisualBrowsingAgent", False, False),
        ("BrowsingAgent", True, False),
    ],
)
def test_the_visual_agent_alone_sees_pictures_if_its_model_can(
    name: str, sees: bool, is_sent: bool
) -> None:
    model = ListeningModel(REPLY)
    model.supports_vision = sees
    agent = make_agent(name, model, "tools", TOOLS)
    call = a.McpCall(server="browser", name="browser_navigate", reply=1)
    seen = o.McpResult(content="[1] link", images=(PICTURE,), cause=2)
    events = [agent.system_prompt(), ModelReplied(completion=REPLY), call, seen]
    state = State.fold([event.model_copy(update={"id": n}) for n, event in enumerate(events)])
    assert isinstance(agent.step(state), a.McpCall)
    [(messages, _)] = model.asked
    assert (PICTURE in str(messages)) == is_sent
    assert "[1] link" in str(messages)
    takes_pictures = name == "VisualBrowsingAgent" and sees
    assert ("browser_take_screenshot" in messages[0]["content"]) >= takes_pictures
