"""The default agent: a model that acts by writing code, one step at a time.

Its system prompt has the general rules, and the tools as text for models without native tool calls.
An agent that a repository defines is this agent with instructions and tools of its own.
"""

from collections.abc import Collection, Sequence
from typing import Any

from resolver.agents.argument_types import MAX_TIMEOUT, correct_thread_answers
from resolver.agents.definitions import MCP, NOTHING, AgentDefinition, AvailableTools
from resolver.agents.replies import find_offered_tools, next_action, read_reply
from resolver.agents.tags import available_tags, write_tags
from resolver.agents.tools import (
    MCP_TAG,
    DelegateAgent,
    available_tools,
    native_names,
    native_specs,
    refuse_if_unavailable,
    tool_specs,
    tools_text,
)
from resolver.config.templates import render
from resolver.errors import ContextWindowExceeded
from resolver.events import actions as a
from resolver.events.actions import CondensationRequest
from resolver.events.base import ActionBase
from resolver.events.lifecycle import SystemPrompt
from resolver.events.state import State
from resolver.llm.base import Model
from resolver.memory.conversation import ConversationMemory, Dialect
from resolver.models.run import JsonObject, PlanItem

_EXAMPLES = {
    "bash": a.CmdRun(command="python -m pytest tests/test_parser.py -x -q 2>&1 | tail -n 40"),
    "slow": a.CmdRun(command="make test", timeout=900.0),
    "input": a.CmdRun(command="C-c", is_input=True),
    "cell": a.IPythonRunCell(code="from parser import parse\nparse('1..2')"),
    "view": a.FileRead(path="src/parser.py", view_range=(40, 80)),
    "create": a.FileWrite(path="tests/test_dots.py", content="from parser import parse\n"),
    "replace": a.FileEdit(
        command="str_replace",
        path="src/parser.py",
        old_str="    return text.split('.')",
        new_str="    return [part for part in text.split('.') if part]",
    ),
    "insert": a.FileEdit(
        command="insert", path="src/parser.py", insert_line=0, new_str="import re"
    ),
    "undo": a.FileEdit(command="undo_edit", path="src/parser.py"),
    "quoted": a.CmdRun(command="grep -rn '</execute_bash>' docs"),
    "think": a.Think(content="Both callers pass None here, so the guard belongs in parse()."),
    "plan": a.PlanUpdate(
        items=(
            PlanItem(title="reproduce the crash with a test", status="done"),
            PlanItem(title="fix parse()", status="doing"),
            PlanItem(title="run the whole suite"),
        )
    ),
    "delegate": a.Delegate(
        agent="CodeActAgent",
        task="Find every caller of parse() in src/ and report file, line and what it passes.",
    ),
    "recall": a.Recall(query="flaky tests"),
    "remember": a.Remember(note="`make test` needs `make build` first; one suite takes 4 minutes."),
    "browse": a.BrowseInteractive(code="goto('http://127.0.0.1:8000/login')"),
    "steps": a.BrowseInteractive(code="fill('12', 'alice')\nclick('15')"),
    "finish": a.Finish(
        message="Keep empty parts out of parse()",
        root_cause="`parse('1..2')` kept the empty part between two dots.",
        change="`parse()` in src/parser.py leaves empty parts out; a test was added.",
        verification="`python -m pytest tests -q`: 1 failed before, 41 passed after.",
        remaining="I did not try it on Windows.",
    ),
    "report": a.Finish(message="Empty parts are kept on purpose: see `src/parser.py:41-44`."),
}
"""Examples in the prompt.

The code that the parser is tested against renders them, so they are always valid.
"""


def system_text(
    dialect: Dialect, tools: Collection[str], colleagues: Sequence[DelegateAgent] = ()
) -> str:
    """Return the system prompt of CodeActAgent with these tools.

    colleagues: agents that it may delegate to.
    """
    return render(
        "agent/system.md.j2", dialect=dialect, **render_tag_dialect(tools, colleagues)
    ).strip()


def render_tag_dialect(
    tools: Collection[str], colleagues: Sequence[DelegateAgent] = (), *, is_read_only: bool = False
) -> dict[str, Any]:
    """Return the template values for the description of the tag dialect.

    is_read_only: the result of the agent is its final message; it publishes no change.
    """
    return {
        "tools": tools,
        "colleagues": colleagues,
        "answers": is_read_only,
        "examples": {name: write_tags(action) for name, action in _EXAMPLES.items()},
        "most_seconds": int(MAX_TIMEOUT),
    }


class CodeActAgent:
    """Queries the model with the conversation so far, and returns its actions one at a time.

    model: expected to have recorded each reply in the state by the time `complete` returns
    (`resolver.llm.base.RecordedModel`). If a reply is not recorded, only its first action is used,
    with `reply=None`.
    memory: creates the messages; its dialect must be `dialect`.
    available: tools in addition to those of the sandbox.
    """

    name = "CodeActAgent"
    is_read_only = False
    """True if the result of the agent is its final message and no change is published."""

    def __init__(
        self,
        model: Model,
        memory: ConversationMemory,
        dialect: Dialect,
        available: AvailableTools = NOTHING,
    ) -> None:
        self._model = model
        self._memory = memory
        self._dialect = dialect
        self._tools = available_tools(
            available.delegates, available.browser, available.recall, available.remember
        )
        self._colleagues = available.colleagues
        self._mcp = available.mcp
        self._thread_labels = available.thread_labels

    def system_prompt(self) -> SystemPrompt:
        """Return the general rules and, in the tag dialect, the tools as text."""
        text = system_text(self._dialect, self._tools, self._colleagues)
        return self._build_system_prompt(text)

    def step(self, state: State) -> ActionBase:
        """Return the next action of the last reply, or the first one of a new reply.

        A call of a tool that the agent does not have, or an edit by a read-only agent, becomes an
        `Invalid` with the reason. If the conversation exceeds the context window, the action is a
        CondensationRequest.

        Raises ModelError, and ContextWindowExceeded if the previous CondensationRequest was not
        answered.
        """
        action = correct_thread_answers(self._requested_action(state), self._thread_labels)
        return refuse_if_unavailable(
            action, self._tools, self._tool_names(), may_edit=not self.is_read_only
        )

    def _requested_action(self, state: State) -> ActionBase:
        """Return the next action that the model asks for, whether it is available or not."""
        pending_action = next_action(state, self._dialect)
        if pending_action is not None:
            return pending_action
        first_new_event = len(state.events)
        specs = list(self._tool_specs()) if self._dialect == "tools" else None
        try:
            completion = self._model.complete(self._memory.messages(state), specs)
        except ContextWindowExceeded:
            if _is_unanswered(state):
                raise
            return CondensationRequest()
        # The reply is in the log by now, so the action gets its id. A resumed run finds the same
        # reply there and continues with the actions that were not taken yet.
        action = next_action(state, self._dialect, first_new_event)
        if action is not None:
            return action
        return read_reply(completion, self._dialect, *find_offered_tools(state))[0]

    def _build_system_prompt(self, text: str) -> SystemPrompt:
        """Return the system prompt event, with the section about MCP tools appended to `text`."""
        text = f"{text.strip()}\n\n{tools_text(self._mcp, self._dialect)}".strip()
        return SystemPrompt(
            content=text, tools=self._tool_names(), dialect=self._dialect, mcp_tools=self._mcp
        )

    def _tool_specs(self) -> tuple[JsonObject, ...]:
        specs = tool_specs(
            self._tools, self._colleagues, self.is_read_only, bool(self._thread_labels)
        )
        return (*specs, *native_specs(self._mcp))

    def _tool_names(self) -> tuple[str, ...]:
        """Return the names of the agent's tools, as it writes them."""
        if self._dialect == "tools":
            return (*self._tools, *native_names(self._mcp))
        return (*available_tags(self._tools), *((MCP_TAG,) if self._mcp else ()))


def _is_unanswered(state: State) -> bool:
    """Return True if the newest event is a CondensationRequest, without a Condensation."""
    return bool(state.events) and isinstance(state.events[-1], CondensationRequest)


class DefinedAgent(CodeActAgent):
    """Has the tools of its definition that are available in this run, and no others.

    Its prompt consists of the general rules and the text of the definition. Calls of other tools
    are refused with a reason.
    """

    def __init__(
        self, definition: AgentDefinition, model: Model, dialect: Dialect, available: AvailableTools
    ) -> None:
        memory = ConversationMemory(dialect, sees_images=model.supports_vision)
        super().__init__(model, memory, dialect, available)
        self.name = definition.name
        self.is_read_only = definition.read_only
        self._definition = definition
        # A definition can't know which servers an installation has: it gets all of them or none.
        self._mcp = available.mcp if MCP in definition.tools else ()
        available_names = available_tools(
            available.delegates, available.browser, available.recall, available.remember
        )
        self._tools = tuple(name for name in definition.tools if name in available_names)

    def system_prompt(self) -> SystemPrompt:
        """Return the general rules, the definition's text and, in the tag dialect, the tools."""
        text = render(
            "agent/defined.md.j2",
            dialect=self._dialect,
            definition=self._definition,
            **render_tag_dialect(self._tools, self._colleagues, is_read_only=self.is_read_only),
        )
        return self._build_system_prompt(text)
