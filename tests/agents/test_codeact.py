"""Tests of the agent's step, which depends on the log alone."""

import json
from collections.abc import Sequence

import pytest

from resolver.agents.codeact import CodeActAgent
from resolver.agents.definitions import AvailableTools
from resolver.agents.registry import is_answering_agent, make_agent
from resolver.errors import ContextWindowExceeded, UsageError
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, Source
from resolver.events.lifecycle import Condensation, ModelReplied
from resolver.events.state import State
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream
from resolver.llm.base import ChatMessage, RecordedModel, ToolSpec
from resolver.llm.replay import ReplayModel
from resolver.memory.conversation import Dialect
from resolver.models.run import Completion, McpTool, RequestedToolCall
from tests.agents.test_tags import in_tags

BROWSER_TOOL = McpTool(server="browser", name="browser_navigate")


class ListeningModel:
    """Returns its replies in turn, raises errors among them, and stores its requests."""

    def __init__(self, *replies: Completion | Exception) -> None:
        self.name = "listening"
        self.supports_tools = True
        self.supports_vision = False
        self.asked: list[tuple[list[ChatMessage], list[ToolSpec] | None]] = []
        self._replies = list(replies)

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        self.asked.append((messages, tools))
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


class Run:
    """A log that grows like under the controller."""

    def __init__(self, events: Sequence[object] = ()) -> None:
        self.store = MemoryStore()
        self.stream = EventStream(self.store)
        self.state = State()
        self.stream.subscribe("state", self.state.apply, essential=True)
        for event in events:
            self.stream.add(event)  # type: ignore[type-var]

    def agent(self, *replies: Completion | Exception, dialect: Dialect = "tools") -> CodeActAgent:
        self.model = ListeningModel(*replies)
        recorded = RecordedModel(
            self.model, lambda c: self.stream.add(ModelReplied(completion=c)) and None
        )
        return CodeActAgent(recorded, dialect)

    def step(self, agent: CodeActAgent) -> ActionBase:
        action = self.stream.add(agent.step(self.state))
        if isinstance(action, a.CmdRun):
            self.stream.add(o.CmdOutput(content="out", exit_code=0, cause=action.id))
        return action


def bash(*commands: str, text: str = "") -> Completion:
    calls = tuple(
        RequestedToolCall(id=c, name="execute_bash", arguments=f'{{"command": "{c}"}}')
        for c in commands
    )
    return Completion(model="m", text=text, tool_calls=calls)


TASK = a.Message(content="fix it", source=Source.USER)


def commands(state: State) -> list[str]:
    return [e.command for e in state.events if isinstance(e, a.CmdRun)]


def test_several_calls_of_a_reply_are_taken_in_order_for_one_model_call() -> None:
    run = Run([TASK])
    agent = run.agent(bash("a", "b", "c", text="first"), bash("d"))
    taken = [run.step(agent) for _ in range(4)]
    assert commands(run.state) == ["a", "b", "c", "d"]
    assert len(run.model.asked) == 2
    assert [x.thought for x in taken] == ["first", "", "", ""]
    replies = [e.id for e in run.state.events if isinstance(e, ModelReplied)]
    assert [x.reply for x in taken] == [replies[0]] * 3 + [replies[1]]


def test_after_finish_the_next_step_calls_the_model_again() -> None:
    arguments = '{"title": "Do it", "message": "ok"}'
    finish = RequestedToolCall(id="f", name="finish", arguments=arguments)
    reply = bash("a").model_copy(update={"tool_calls": (finish, *bash("a").tool_calls)})
    run = Run([TASK])
    agent = run.agent(reply, bash("b"))
    assert isinstance(run.step(agent), a.Finish)
    run.stream.add(a.Message(content="not quite", source=Source.USER))
    assert run.step(agent).command == "b"  # type: ignore[attr-defined]
    messages = run.model.asked[1][0]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "user"]


def test_a_full_context_requests_a_condensation_and_is_an_error_without_one() -> None:
    run = Run([TASK])
    full = ContextWindowExceeded("too long")
    agent = run.agent(full, bash("a"), full, full)
    assert isinstance(run.step(agent), a.CondensationRequest)
    run.stream.add(Condensation(forgotten=()))
    assert isinstance(run.step(agent), a.CmdRun)
    run.step(agent)
    with pytest.raises(ContextWindowExceeded):
        run.step(agent)


def finish(**arguments: str) -> Completion:
    call = RequestedToolCall(id="f", name="finish", arguments=json.dumps(arguments))
    return Completion(model="m", tool_calls=(call,))


def test_a_title_that_cant_be_used_is_asked_for_once() -> None:
    run = Run([TASK])
    agent = run.agent(finish(title="#12", message="ok"), finish(title="# Long\n", message="ok"))
    asked = run.step(agent)
    assert isinstance(asked, a.Invalid) and "at most 72 characters" in asked.reason
    ended = run.step(agent)
    assert isinstance(ended, a.Finish) and (ended.title, ended.message) == ("", "ok")


@pytest.mark.parametrize("arguments", [{"title": "Do it"}, {"reason": "already_fixed"}])
def test_a_title_or_the_reason_for_no_change_ends_the_work(arguments: dict[str, str]) -> None:
    run = Run([TASK])
    assert isinstance(run.step(run.agent(finish(message="ok", **arguments))), a.Finish)


EVERYTHING = AvailableTools(index=True, mcp=(BROWSER_TOOL, McpTool(server="docs", name="search")))


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("ReadOnlyAgent", {"execute_bash", "execute_ipython_cell", "think", "plan", "finish"}),
        ("ReviewerAgent", {"execute_bash", "execute_ipython_cell", "think", "plan",
                           "review_comment", "submit_review"}),
        ("LocAgent", {"execute_bash", "think", "search_code", "explore_code", "report_places"}),
        ("BrowsingAgent", {"think", "finish", "browser__browser_navigate"}),
        ("VisualBrowsingAgent", {"think", "finish", "browser__browser_navigate"}),
    ],
)  # fmt: skip
def test_an_agent_that_changes_nothing_is_offered_its_own_tools_alone(
    name: str, tools: set[str]
) -> None:
    agent = make_agent(name, ReplayModel([]), "tools", EVERYTHING)
    assert set(agent.system_prompt().tools) == tools
    assert is_answering_agent(name, ())


@pytest.mark.parametrize("dialect", ["tools", "tags"])
@pytest.mark.parametrize(
    ("name", "tool", "arguments"),
    [
        ("CodeActAgent", "search_code", {"terms": "parse"}),
        ("CodeActAgent", "delegate", {"task": "x"}),
        ("CodeActAgent", "submit_review", {"summary": "x"}),
        ("ReadOnlyAgent", "str_replace_editor", {"command": "undo_edit", "path": "a.py"}),
        ("LocAgent", "finish", {"message": "It is in src/a.py."}),
        ("BrowsingAgent", "execute_bash", {"command": "ls"}),
    ],
)
def test_a_tool_that_was_not_offered_is_refused_and_does_nothing(
    name: str, tool: str, arguments: dict[str, str], dialect: Dialect
) -> None:
    call = RequestedToolCall(id="c", name=tool, arguments=json.dumps(arguments))
    by_tag = Completion(model="m", text=in_tags(tool, arguments))
    reply = by_tag if dialect == "tags" else Completion(model="m", tool_calls=(call,))
    agent = make_agent(name, ReplayModel([reply]), dialect, EVERYTHING)
    taken = agent.step(State.fold([agent.system_prompt().model_copy(update={"id": 0})]))
    assert isinstance(taken, a.Invalid)
    assert f"you have no tool '{tool}', so nothing was executed" in taken.reason


@pytest.mark.parametrize("name", ["BrowsingAgent", "VisualBrowsingAgent", "LocAgent"])
def test_an_agent_whose_part_the_run_lacks_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match="this run has no"):
        make_agent(name, ReplayModel([]), "auto")
