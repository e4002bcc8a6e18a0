"""Tests of native tool calls: each becomes an action, and a wrong one is explained."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.agents.tags import parse_tags, write_tags
from resolver.agents.tools.base import Tool
from resolver.agents.tools.calls import parse_tool_call
from resolver.agents.tools.registry import TOOLS, tool_specs
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.events.log import ACTION_TYPES, dump_line, parse_line
from resolver.models.approval import SecurityRisk
from resolver.models.pull_request import ThreadAnswer
from resolver.models.run import CodePlace, PlanItem, RequestedToolCall


def call(tool: str, /, raw: str | None = None, **arguments: object) -> ActionBase:
    text = json.dumps(arguments) if raw is None else raw
    action = parse_tool_call(RequestedToolCall(id="c1", name=tool, arguments=text))
    assert action.tool_call is not None and action.tool_call.arguments == text
    return action.model_copy(update={"tool_call": None})


def reason(tool: str, /, raw: str | None = None, **arguments: object) -> str:
    action = call(tool, raw, **arguments)
    assert isinstance(action, a.Invalid), action
    return action.reason


@pytest.mark.parametrize(
    ("tool", "arguments", "action"),
    [
        ("execute_bash", {"command": "ls"}, a.CmdRun(command="ls")),
        (
            "execute_bash",
            {"command": "y", "timeout": "30", "is_input": "true"},
            a.CmdRun(command="y", timeout=30.0, is_input=True),
        ),
        ("execute_bash", {"command": "ls", "timeout": None}, a.CmdRun(command="ls")),
        ("execute_bash", {"command": "", "is_input": True}, a.CmdRun(command="", is_input=True)),
        ("execute_ipython_cell", {"code": "1"}, a.IPythonRunCell(code="1")),
        ("str_replace_editor", {"command": "view", "path": "x"}, a.FileRead(path="x")),
        (
            "str_replace_editor",
            {"command": "view", "path": "x", "view_range": "[1, -1]", "old_str": ""},
            a.FileRead(path="x", view_range=(1, -1)),
        ),
        (
            "str_replace_editor",
            {"command": "create", "path": "x", "file_text": ""},
            a.FileWrite(path="x", content=""),
        ),
        (
            "str_replace_editor",
            {"command": "str_replace", "path": "x", "old_str": "b"},
            a.FileEdit(command="str_replace", path="x", old_str="b", new_str=""),
        ),
        (
            "str_replace_editor",
            {"command": "insert", "path": "x", "insert_line": "0", "new_str": "b"},
            a.FileEdit(command="insert", path="x", insert_line=0, new_str="b"),
        ),
        (
            "str_replace_editor",
            {"command": "undo_edit", "path": "x"},
            a.FileEdit(command="undo_edit", path="x"),
        ),
        ("think", {"thought": "hm"}, a.Think(content="hm")),
        (
            "plan",
            {"items": [{"title": " look\n around", "status": "completed"}, "fix"]},
            a.PlanUpdate(
                items=(PlanItem(title="look around", status="done"), PlanItem(title="fix"))
            ),
        ),
        (
            "plan",
            {"items": "[x] look\n- [>] fix\n3. [ ] test\nwrite it up"},
            a.PlanUpdate(
                items=(
                    PlanItem(title="look", status="done"),
                    PlanItem(title="fix", status="doing"),
                    PlanItem(title="test"),
                    PlanItem(title="write it up"),
                )
            ),
        ),
        ("delegate", {"task": "look"}, a.Delegate(agent="CodeActAgent", task="look")),
        ("finish", {"message": "ok"}, a.Finish(message="ok")),
        (
            "finish",
            {"message": "ok", "task_completed": "partial"},
            a.Finish(message="ok", task_completed=False),
        ),
        (
            "finish",
            {"message": "Which one?", "reason": "needs_answer"},
            a.Finish(message="Which one?", task_completed=False, declined="needs_answer"),
        ),
        (
            "finish",
            {
                "message": "ok",
                "cause": "c",
                "change": "d",
                "verification": "v",
                "remaining": None,
            },
            a.Finish(message="ok", root_cause="c", change="d", verification="v"),
        ),
    ],
)
def test_a_call_becomes_its_action(
    tool: str, arguments: dict[str, object], action: ActionBase
) -> None:
    assert call(tool, **arguments) == action


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("execute_bsh", {"command": "ls"}, "did you mean 'execute_bash'"),
        ("bash", {"command": "ls"}, "did you mean 'execute_bash'"),
        ("web", {"code": "x"}, "The tools are execute_bash,"),
        ("", {}, "a tool without a name"),
        ("execute_bash", {}, "command is missing"),
        ("execute_bash", {"cmd": "ls"}, "did you mean 'command'"),
        ("execute_bash", {"command": ["ls"]}, "valid string"),
        ("execute_bash", {"command": "ls", "timeout": -1}, "greater than 0"),
        ("execute_bash", {"command": "ls", "timeout": "NaN"}, "timeout"),
        ("execute_bash", {"command": "ls", "timeout": 1e9}, "less than or equal to 3600"),
        ("execute_bash", {"command": "  "}, "command is empty"),
        ("str_replace_editor", {"command": "create", "path": "x"}, "create needs file_text"),
        (
            "str_replace_editor",
            {"command": "view", "path": "x", "new_str": "y"},
            "view does not take new_str",
        ),
        (
            "str_replace_editor",
            {"command": "str_replace", "path": "x", "old_str": ""},
            "old_str is empty",
        ),
        (
            "str_replace_editor",
            {"command": "view", "path": "x", "view_range": [1]},
            "view_range",
        ),
        ("think", {"thought": "\ud800"}, "surrogate"),
        ("finish", {"message": "x", "verification": ["pytest"]}, "verification: "),
        ("finish", {"message": "x", "verified": "pytest"}, "did you mean 'verification'"),
        ("str_replace_edit", {"path": "x"}, "did you mean 'str_replace_editor'"),
        ("functions.execute_bash", {"command": "ls"}, "did you mean 'execute_bash'"),
        ("finish" * 10**5, {}, "there is no tool"),
        ("plan", {"items": [{"title": " "}]}, "an item has no title"),
        ("plan", {"items": [{"title": "x", "status": "maybe"}]}, "items"),
        ("plan", {"items": ["x"] * 51}, "at most 50 items"),
        ("delegate", {"agent": "CodeActAgent", "task": " "}, "task is empty"),
    ],
)
def test_a_wrong_call_is_answered_with_the_correct_form(
    tool: str, arguments: dict[str, object], words: str
) -> None:
    assert words in reason(tool, **arguments)


@pytest.mark.parametrize(
    "raw",
    [
        "{", "[1]", "null", '"x"', "{'command': 'ls'}", "[" * 5000, "9" * 5000,
        '"{\\"command\\": \\"ls\\"}"', '["ls"]', '{"command": "ls",}', '{command: "ls"}',
        '{"command": "ls", "is_input": True}', '{"command": None}', 'command="ls"',
        '{"command": "ls"} {"command": "pwd"}', '```json\n{"command": "ls"}\n```',
        "<execute_bash>ls</execute_bash>", '{"command": "' + "x" * 10**6, "\x00",
    ],
)  # fmt: skip
def test_arguments_that_are_not_a_json_object_are_explained(raw: str) -> None:
    refusal = reason("execute_bash", raw)
    assert "JSON" in refusal
    assert (
        "execute_bash(command: string, timeout?: number, is_input?: boolean, security_risk: string)"
        in refusal
    )
    assert len(refusal) < 1500


def test_a_raw_line_break_in_a_json_string_is_accepted() -> None:
    assert call("think", '{"thought": "a\nb"}') == a.Think(content="a\nb")


def test_a_call_cut_off_by_the_output_limit_is_reported_as_such() -> None:
    request = RequestedToolCall(id="c", name="execute_bash", arguments='{"command": "l')
    action = parse_tool_call(request, is_truncated=True)
    assert isinstance(action, a.Invalid)
    assert "output limit" in action.reason


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
names = st.sampled_from([*TOOLS, "web", "finsh", "bash"]) | st.text(max_size=20)
fields = st.sampled_from(sorted({f for t in TOOLS.values() for f in t.arguments.model_fields}))
arguments = (
    st.dictionaries(fields | st.text(max_size=9), json_values, max_size=6).map(json.dumps)
    | json_values.map(json.dumps)
    | st.text(max_size=60)
)


@given(names, arguments)
def test_any_call_becomes_an_action_that_can_be_logged(name: str, raw: str) -> None:
    action = parse_tool_call(RequestedToolCall(id="c", name=name, arguments=raw))
    assert isinstance(action, ACTION_TYPES)
    assert parse_line(dump_line(action).encode()) == action  # type: ignore[arg-type]


FILE = {"path": "src/a.py", "security_risk": SecurityRisk.MEDIUM}
EXAMPLES: dict[str, tuple[ActionBase, ...]] = {
    "execute_bash": (
        a.CmdRun(command="make test", timeout=900.0, security_risk=SecurityRisk.LOW),
        a.CmdRun(command="C-c", is_input=True, security_risk=SecurityRisk.LOW),
        a.CmdRun(command="grep -rn '</execute_bash>' docs"),
    ),
    "execute_ipython_cell": (a.IPythonRunCell(code="from x import y\ny('1..2')"),),
    "str_replace_editor": (
        a.FileRead(path="src/a.py", view_range=(40, 80)),
        a.FileWrite(content="</str_replace_editor></file_text>\n", **FILE),
        a.FileWrite(content="no line break", **FILE),
        a.FileEdit(command="str_replace", old_str="    return x", new_str="", **FILE),
        a.FileEdit(command="insert", insert_line=0, new_str="import re\n", **FILE),
        a.FileEdit(command="undo_edit", **FILE),
    ),
    "think": (a.Think(content="Both callers pass None."),),
    "plan": (a.PlanUpdate(items=(PlanItem(title="fix [x] it", status="done"),)),),
    "delegate": (a.Delegate(agent="ReadOnlyAgent", task="Find <agent>x</agent>."),),
    "recall": (a.Recall(query="flaky-tests"), a.Recall(query="")),
    "finish": (
        a.Finish(
            title="Keep it",
            message='It "is"\n<cause>kept</cause>',
            root_cause="two\nlines",
            threads=(ThreadAnswer(id="T1", addressed=True, answer="Done."),),
        ),
    ),
    "search_code": (a.CodeSearch(terms=("Parser.parse", "a\nb"), path="src/"),),
    "explore_code": (
        a.CodeExplore(start=("a::b",), direction="upstream", depth=2, edges=("calls", "inherits")),
    ),
    "report_places": (
        a.Finish(message="m", places=(CodePlace(path="a.py", start=1, end=2, why="w"),)),
    ),
    "review_comment": (
        a.ReviewComment(path="a.py", start_line=1, line=2, body="<b>", suggestion="  y"),
    ),
    "submit_review": (
        a.Finish(message="Fine.", verdict="request_changes", verification="1\n2", remaining="no"),
    ),
}


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_each_example_of_a_tool_is_the_same_action_in_both_dialects(tool: Tool) -> None:
    for action in EXAMPLES[tool.name]:
        arguments = tool.arguments.from_action(action)
        assert arguments is not None
        assert parse_tags(write_tags(action)) == (action,)
        assert call(tool.name, **tool.arguments.texts_of(arguments)) == action


RATED_TOOLS = ("execute_bash", "execute_ipython_cell", "str_replace_editor")


@pytest.mark.parametrize("name", RATED_TOOLS)
@pytest.mark.parametrize(
    ("stated", "risk"),
    [
        ("low", SecurityRisk.LOW), ("MEDIUM", SecurityRisk.MEDIUM), (" High ", SecurityRisk.HIGH),
        ("UNKNOWN", None), ("severe", None), ("", None), (3, None), (None, None),
    ],
)  # fmt: skip
def test_the_stated_risk_is_that_of_the_action_in_both_dialects(
    name: str, stated: object, risk: SecurityRisk | None
) -> None:
    for example in EXAMPLES[name]:
        arguments = {**(TOOLS[name].arguments.from_action(example) or {}), "security_risk": None}
        texts = TOOLS[name].arguments.texts_of(arguments)
        action = call(name, **texts, security_risk=stated)
        assert action == example.model_copy(update={"security_risk": risk})
        if isinstance(stated, str):
            unrated = write_tags(action.model_copy(update={"security_risk": None}))
            rated = unrated.replace(" ", f' security_risk="{stated}" ', 1)
            if " " not in unrated.partition(">")[0]:
                rated = unrated.replace(">", f' security_risk="{stated}">', 1)
            assert parse_tags(rated) == (action,)


def test_the_tools_that_can_change_something_require_a_rating() -> None:
    specs = {s["function"]["name"]: s["function"]["parameters"] for s in tool_specs()}
    for name, schema in specs.items():
        assert ("security_risk" in schema["properties"]) is (name in RATED_TOOLS)
        assert ("security_risk" in schema["required"]) is (name in RATED_TOOLS)
    assert specs["execute_bash"]["properties"]["security_risk"]["enum"] == ["low", "medium", "high"]


def test_a_rating_of_a_tool_that_takes_none_is_ignored() -> None:
    assert call("think", thought="hm", security_risk="low") == a.Think(content="hm")
    assert parse_tags('<think security_risk="low">hm</think>') == (a.Think(content="hm"),)
