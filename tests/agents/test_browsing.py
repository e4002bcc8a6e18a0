"""Tests of the agents that use only a browser."""

from collections.abc import Sequence
from typing import Any

import pytest

from resolver.agents.definitions import AvailableTools
from resolver.agents.readonly import BrowsingAgent, VisualBrowsingAgent
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, Source
from resolver.events.lifecycle import ModelReplied
from resolver.events.state import State
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream
from resolver.llm.base import ChatMessage, RecordedModel, ToolSpec
from resolver.memory.conversation import Dialect
from resolver.models.base import JsonObject
from resolver.models.run import Completion, McpTool, RequestedToolCall

DIALECTS: list[Dialect] = ["tools", "tags"]
PICTURE = "data:image/jpeg;base64,AAAA"
NAVIGATE = '{"url": "http://127.0.0.1:8000/"}'
IN_TAGS = f"<browser__browser_navigate>{NAVIGATE}</browser__browser_navigate>"
URL: JsonObject = {"type": "object", "properties": {"url": {"type": "string"}}}
TOOLS = AvailableTools(
    mcp=(
        McpTool(server="browser", name="browser_navigate", parameters=URL),
        McpTool(server="docs", name="search"),
    )
)


class Seeing:
    """A model with image input that returns its replies in turn and stores its requests."""

    name = "seeing"
    supports_tools = True

    def __init__(self, replies: Sequence[Completion], sees: bool = True) -> None:
        self.supports_vision = sees
        self._replies = list(replies)
        self.messages: list[ChatMessage] = []

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        self.messages, self.tools = messages, tools
        return self._replies.pop(0)


def call(name: str, arguments: str) -> Completion:
    calls = (RequestedToolCall(id="c", name=name, arguments=arguments),)
    return Completion(model="m", tool_calls=calls, text="I look.")


def stepped(
    agent: type[BrowsingAgent], dialect: Dialect, *replies: Completion, sees: bool = True
) -> tuple[list[ActionBase], Seeing]:
    """Return the agent's actions; each browser action is answered with a picture."""
    stream, state = EventStream(MemoryStore()), State()
    stream.subscribe("state", state.apply, essential=True)
    model = Seeing(replies, sees)

    def record(completion: Completion) -> None:
        stream.add(ModelReplied(completion=completion))

    made = agent(RecordedModel(model, record), dialect, TOOLS)
    stream.add(made.system_prompt())
    stream.add(a.Message(content="Look at the page", source=Source.USER))
    taken: list[ActionBase] = []
    for _ in replies:
        action = stream.add(made.step(state))  # type: ignore[type-var]
        taken.append(action)  # type: ignore[arg-type]
        if isinstance(action, a.McpCall):
            stream.add(o.McpResult(content="[1] link", images=(PICTURE,), cause=action.id))
    return taken, model


def pictures(messages: list[dict[str, Any]]) -> list[str]:
    return [
        part["image_url"]["url"]
        for message in messages
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]


def browse(dialect: Dialect) -> Completion:
    if dialect == "tools":
        return call("browser__browser_navigate", NAVIGATE)
    return Completion(model="m", text=IN_TAGS)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_visual_agent_sees_the_pictures_of_the_browser(dialect: Dialect) -> None:
    (first, _), model = stepped(VisualBrowsingAgent, dialect, browse(dialect), browse(dialect))
    assert isinstance(first, a.McpCall) and first.name == "browser_navigate"
    assert pictures(model.messages) == [PICTURE]
    assert "browser_take_screenshot" in model.messages[0]["content"]


@pytest.mark.parametrize(
    ("agent", "sees"), [(BrowsingAgent, True), (BrowsingAgent, False), (VisualBrowsingAgent, False)]
)
def test_without_image_input_the_visual_agent_works_with_the_tree(
    agent: type[BrowsingAgent], sees: bool
) -> None:
    (first, _), model = stepped(agent, "tools", browse("tools"), browse("tools"), sees=sees)
    assert isinstance(first, a.McpCall)
    assert not pictures(model.messages)
    assert "[1] link" in model.messages[-1]["content"]
