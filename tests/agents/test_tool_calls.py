"""Tests of native tool calls: each becomes an action, and a wrong one is explained."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.agents.tags import parse_tags
from resolver.agents.tools.calls import parse_tool_call
from resolver.agents.tools.registry import TOOLS, tool_specs
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.events.log import ACTION_TYPES, dump_line, parse_line
from resolver.models.approval import SecurityRisk
from resolver.models.pull_request import ThreadAnswer
from resolver.models.run import CodePlace, PlanItem, RequestedToolCall
from tests.agents.test_tags import in_tags


def call(tool: str, /, raw: str | None = None, **arguments: object) -> ActionBase:
    text = json.dumps(arguments) if raw is None else raw
    action = parse_tool_call(RequestedToolCall(id="c1", name=tool, arguments=text))
    assert action.tool_call is not None and action.tool_call.arguments == text
    return action.model_copy(update={"tool_call": None})


def reason(tool: str, /, raw: str | None = None, **arguments: object) -> str:
    action = call(tool, raw, **arguments)
    assert isinstance(action, a.Invalid), action
    return action.reason


VIEW = {"command": "view", "path": "x"}
EDIT = {"command": "str_replace", "path": "x"}
THREADS = (ThreadAnswer(id="T1", addressed=True, answer="Yes."), ThreadAnswer(id="T2", answer="No"))
PLACE = {"path": "./src/a.py", "start": 3, "symbol": "parse", "why": "w", "known": False}
LINES = {"path": "./a.py", "line": "12", "body": "x"}


def answered(*threads: ThreadAnswer) -> a.Finish:
    return a.Finish(message="m", threads=threads)


def planned(*items: tuple[str, str]) -> a.PlanUpdate:
    return a.PlanUpdate(items=tuple(PlanItem(title=t, status=s) for t, s in items))  # type: ignore[arg-type]


CALLS: tuple[tuple[str, dict[str, object], ActionBase], ...] = (
    ("execute_bash", {"command": "ls"}, a.CmdRun(command="ls")),
    ("execute_bash", {"command": "y", "timeout": "30", "is_input": "true"},
     a.CmdRun(command="y", timeout=30.0, is_input=True)),
    ("execute_bash", {"command": "ls", "timeout": None}, a.CmdRun(command="ls")),
    ("execute_bash", {"command": "", "is_input": True}, a.CmdRun(command="", is_input=True)),
    ("execute_ipython_cell", {"code": "from x import y\ny('1..2')"},
     a.IPythonRunCell(code="from x import y\ny('1..2')")),
    ("str_replace_editor", VIEW, a.FileRead(path="x")),
    ("str_replace_editor", {**VIEW, "view_range": "[1, -1]", "old_str": ""},
     a.FileRead(path="x", view_range=(1, -1))),
    ("str_replace_editor", {**VIEW, "view_range": "1-40"},
     a.FileRead(path="x", view_range=(1, 40))),
    ("str_replace_editor", {"command": "create", "path": "x", "file_text": "no line break"},
     a.FileWrite(path="x", content="no line break")),
    ("str_replace_editor", {"command": "create", "path": "x", "file_text": "<path>y</path>\n"},
     a.FileWrite(path="x", content="<path>y</path>\n")),
    ("str_replace_editor", {**EDIT, "old_str": "  b"},
     a.FileEdit(command="str_replace", path="x", old_str="  b", new_str="")),
    ("str_replace_editor", {"command": "insert", "path": "x", "insert_line": "0", "new_str": "b"},
     a.FileEdit(command="insert", path="x", insert_line=0, new_str="b")),
    ("str_replace_editor", {"command": "undo_edit", "path": "x"},
     a.FileEdit(command="undo_edit", path="x")),
    ("think", {"thought": "hm"}, a.Think(content="hm")),
    ("think", {"thought": "hm", "security_risk": "low"}, a.Think(content="hm")),
    ("plan", {"items": [{"title": " look\n around", "status": "completed"}, "fix"]},
     planned(("look around", "done"), ("fix", "todo"))),
    ("plan", {"items": "[x] look\n- [>] fix\n3. [ ] test\nwrite it up"},
     planned(("look", "done"), ("fix", "doing"), ("test", "todo"), ("write it up", "todo"))),
    ("delegate", {"task": "Find <agent>x</agent>."},
     a.Delegate(agent="CodeActAgent", task="Find <agent>x</agent>.")),
    ("recall", {"query": " flaky-tests"}, a.Recall(query="flaky-tests")),
    ("recall", {"query": ""}, a.Recall(query="")),
    ("finish", {"message": "ok", "task_completed": "partial"},
     a.Finish(message="ok", task_completed=False)),
    ("finish", {"message": "Which one?", "reason": "needs_answer"},
     a.Finish(message="Which one?", task_completed=False, declined="needs_answer")),
    ("finish", {"message": "ok", "cause": "c\nd", "verification": "v", "remaining": None},
     a.Finish(message="ok", root_cause="c\nd", verification="v")),
    ("finish", {"message": "m", "threads": [{"id": "t1", "addressed": "yes", "answer": "Yes."},
                                            {"id": "[T02]", "answer": "No"}]}, answered(*THREADS)),
    ("finish", {"message": "m", "threads": '[{"id": 1, "addressed": true, "answer": "Yes."}]'},
     answered(THREADS[0])),
    *(("finish", {"message": "m", "threads": nothing}, answered()) for nothing in ([], "", None)),
    ("search_code", {"terms": ["Parser.parse", "", "b"], "path": "src/"},
     a.CodeSearch(terms=("Parser.parse", "b"), path="src/")),
    ("search_code", {"terms": "f\ng"}, a.CodeSearch(terms=("f", "g"))),
    ("explore_code", {"start": ["a::b"], "direction": "UPSTREAM", "edges": "calls, inherits"},
     a.CodeExplore(start=("a::b",), direction="upstream", edges=("calls", "inherits"))),
    ("report_places", {"message": "m", "places": [PLACE]},
     a.Finish(message="m", places=(
         CodePlace(path="src/a.py", start=3, end=3, symbol="parse", why="w"),))),
    ("report_places", {"message": "not here", "places": [], "task_completed": False},
     a.Finish(message="not here", task_completed=False)),
    ("review_comment", {**LINES, "start_line": "10", "side": "right", "severity": "High",
                        "suggestion": "  y\n"},
     a.ReviewComment(path="a.py", start_line=10, line=12, body="x", severity="high",
                     suggestion="  y")),
    ("review_comment", {**LINES, "suggestion": " ", "start_line": "", "severity": " low"},
     a.ReviewComment(path="a.py", line=12, body="x", severity="low")),
    ("submit_review", {"summary": "Fine.", "verdict": "request changes", "remaining": "no"},
     a.Finish(message="Fine.", verdict="request_changes", remaining="no")),
    ("submit_review", {"summary": "Fine.", "verdict": ""},
     a.Finish(message="Fine.", verdict="comment")),
)  # fmt: skip


def test_each_tool_has_a_call() -> None:
    assert {tool for tool, *_ in CALLS} == set(TOOLS)


@pytest.mark.parametrize(("tool", "arguments", "action"), CALLS)
def test_a_call_is_the_same_action_in_both_dialects(
    tool: str, arguments: dict[str, object], action: ActionBase
) -> None:
    assert call(tool, **arguments) == action
    given = {name: value for name, value in arguments.items() if value is not None}
    assert parse_tags(in_tags(tool, given)) == (action,)


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("execute_bsh", {"command": "ls"}, "did you mean 'execute_bash'"),
        ("web", {"code": "x"}, "The tools are execute_bash,"),
        ("", {}, "a tool without a name"),
        ("execute_bash", {}, "command is missing"),
        ("execute_bash", {"cmd": "ls"}, "did you mean 'command'"),
        ("execute_bash", {"command": "ls", "timeout": "NaN"}, "timeout"),
        ("execute_bash", {"command": "ls", "timeout": 1e9}, "less than or equal to 3600"),
        ("execute_bash", {"command": "  "}, "command is empty"),
        ("str_replace_editor", {"command": "create", "path": "x"}, "create needs file_text"),
        ("str_replace_editor", {**VIEW, "new_str": "y"}, "view does not take new_str"),
        ("str_replace_editor", {**EDIT, "old_str": ""}, "old_str is empty"),
        ("str_replace_editor", {**VIEW, "view_range": [1]}, "view_range"),
        ("think", {"thought": "\ud800"}, "surrogate"),
        ("functions.execute_bash", {"command": "ls"}, "did you mean 'execute_bash'"),
        ("finish" * 10**5, {}, "you have no tool"),
        ("plan", {"items": [{"title": " "}]}, "an item has no title"),
        ("plan", {"items": ["x"] * 51}, "at most 50 items"),
        ("delegate", {"agent": "CodeActAgent", "task": " "}, "task is empty"),
        ("finish", {"message": "m", "threads": "All done."}, "a JSON list"),
        ("finish", {"message": "m", "threads": [{"id": "T1", "answer": "x" * 4001}]}, "threads"),
        ("search_code", {"terms": [""] * 3}, "terms"),
        ("search_code", {"terms": ["x"] * 9}, "at most 8"),
        ("explore_code", {"start": ["a"], "depth": 9}, "depth"),
        ("report_places", {"message": "m", "places": []}, "places is empty"),
        ("report_places", {"message": "m", "places": [{**PLACE, "end": 2}]}, "is before line 3"),
        ("report_places", {"message": "m", "places": "src/a.py:3"}, "a JSON list"),
        ("review_comment", {**LINES, "start_line": 19}, "after line 12"),
        ("review_comment", {**LINES, "line": 9_000, "start_line": 1}, "at most 300"),
        ("review_comment", {**LINES, "body": " "}, "body is empty"),
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


RATED_TOOLS = ("execute_bash", "execute_ipython_cell", "str_replace_editor")


@pytest.mark.parametrize(
    ("stated", "risk"),
    [
        ("low", SecurityRisk.LOW), ("MEDIUM", SecurityRisk.MEDIUM), (" High ", SecurityRisk.HIGH),
        ("UNKNOWN", None), ("", None), (3, None),
    ],
)  # fmt: skip
def test_the_stated_risk_is_that_of_the_action_in_both_dialects(
    stated: object, risk: SecurityRisk | None
) -> None:
    for tool, arguments, action in CALLS:
        if tool in RATED_TOOLS:
            given = {n: v for n, v in arguments.items() if v is not None}
            given["security_risk"] = stated
            expected = action.model_copy(update={"security_risk": risk})
            assert (call(tool, **given), *parse_tags(in_tags(tool, given))) == (expected, expected)


def test_the_tools_that_can_change_something_require_a_rating() -> None:
    specs = {s["function"]["name"]: s["function"]["parameters"] for s in tool_specs()}
    for name, schema in specs.items():
        assert ("security_risk" in schema["properties"]) is (name in RATED_TOOLS)
        assert ("security_risk" in schema["required"]) is (name in RATED_TOOLS)
    assert specs["execute_bash"]["properties"]["security_risk"]["enum"] == ["low", "medium", "high"]
