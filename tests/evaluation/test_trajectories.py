"""Tests of reading what other agents did."""

import json
from typing import Any

import pytest

from resolver.errors import UsageError
from resolver.evaluation.trajectories import parse_trajectory
from resolver.events.actions import CmdRun, Delegate, FileEdit
from resolver.events.lifecycle import ROOT_STAGE, DelegateEvent, ModelReplied, StageCompleted
from resolver.events.log import Event
from resolver.events.observations import CmdOutput, DelegateResult, FileEditResult
from resolver.models.run import Completion
from resolver.trace.atif import build_trajectory


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


MINI: dict[str, Any] = {
    "trajectory_format": "mini-swe-agent-1",
    "instance_id": "ada__sums-1",
    "info": {"submission": "diff --git a/a b/a\n"},
    "messages": [
        {"role": "system", "content": "Be brief"},
        user("Fix it"),
        assistant("THOUGHT: look\n\n```bash\nls -a\n```"),
        user("<returncode>0</returncode>\n<output>\na.py\n</output>"),
        assistant("Two at once\n```bash\nls\n```\n```bash\npwd\n```"),
        user("Please give exactly one command"),
        assistant("```bash\ncat > /testbed/a.py <<'E'\nx = 1\nE\nfalse\n```"),
        user("<returncode>1</returncode>\n<output>\n</output>"),
        assistant("```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff\n```"),
        user("diff --git a/a b/a\n"),
    ],
}


def test_commands_of_mini_swe_agent_run_in_a_shell_of_their_own() -> None:
    trajectory = parse_trajectory(json.dumps(MINI), "x.traj.json")
    assert trajectory.id == "ada__sums-1"
    assert trajectory.patch == b"diff --git a/a b/a\n"
    actions = [event for event in trajectory.events if isinstance(event, CmdRun)]
    results = [event for event in trajectory.events if isinstance(event, CmdOutput)]
    assert actions[0].command == "(cd /testbed\nls -a\n)"
    assert len(actions) == 2
    assert [(r.content, r.exit_code) for r in results] == [("a.py", 0), ("", 1)]
    assert [result.cause for result in results] == [action.id for action in actions]


def test_shell_calls_of_atif_are_commands_and_others_are_left_out() -> None:
    calls = [
        {"tool_call_id": "1", "function_name": "bash_command", "arguments": {"keystrokes": "ls\n"}},
        {"tool_call_id": "2", "function_name": "web_search", "arguments": {"query": "x"}},
        {"tool_call_id": "3", "function_name": "finish", "arguments": {}},
    ]
    results = [{"source_call_id": "1", "content": "a.py"}]
    step = {
        "step_id": 1, "source": "agent", "message": "",
        "tool_calls": calls, "observation": {"results": results},
    }  # fmt: skip
    data = {"schema_version": "ATIF-v1.7", "agent": {"name": "x", "version": "1"}, "steps": [step]}
    trajectory = parse_trajectory(json.dumps(data), "x.json")
    action, result = trajectory.events
    assert isinstance(action, CmdRun) and isinstance(result, CmdOutput)
    assert (action.command, result.content, trajectory.left_out) == ("ls", "a.py", 1)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"messages": 3}', '{"schema_version": "1.0"}'])
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_trajectory(text, "x.json")


@pytest.mark.attack
def test_a_block_that_does_not_end_is_read_once() -> None:
    """A recording has a block of code with a hundred thousand empty lines and no end, and a step
    with as many calls and results: reading them takes time linear in their number."""
    mini = {"messages": [assistant("```bash" + "\n" * 300_000), user("<returncode>0</returncode>")]}
    assert parse_trajectory(json.dumps(mini), "x").events == ()
    calls = [
        {"tool_call_id": f"c{n}", "function_name": "bash", "arguments": {"command": "ls"}}
        for n in range(20_000)
    ]
    results = [{"source_call_id": f"c{n}", "content": str(n)} for n in range(20_000)]
    atif = {
        "schema_version": "ATIF-v1.4",
        "steps": [{"tool_calls": calls, "observation": {"results": results[::-1]}}],
    }
    events = parse_trajectory(json.dumps(atif), "x").events
    assert len(events) == 40_000
    assert isinstance(events[-1], CmdOutput) and events[-1].content == "19999"


def test_a_trajectory_of_resolver_is_read_back_with_its_edits_and_delegates() -> None:
    def reply(id: int, name: str, **arguments: Any) -> ModelReplied:
        call = {"id": f"c{id}", "name": name, "arguments": json.dumps(arguments)}
        return ModelReplied(id=id, completion=Completion(model="m", tool_calls=[call]))

    def called(id: int) -> dict[str, Any]:
        return {"reply": id - 1, "tool_call": {"id": f"c{id - 1}", "name": "", "arguments": "{}"}}

    edit = {"command": "str_replace", "path": "/w/a.py", "old_str": "1", "new_str": "2"}
    inner: list[Event] = [
        reply(0, "execute_bash", command="grep x a.py"),
        CmdRun(id=1, command="grep x a.py", **called(1)),
        CmdOutput(id=2, content="", exit_code=1, cause=1),
    ]
    log: list[Event] = [
        StageCompleted(id=0, stage=ROOT_STAGE, seconds=0, detail="/w"),
        reply(1, "delegate", agent="LocAgent", task="Find it"),
        Delegate(id=2, agent="LocAgent", task="Find it", **called(2)),
        *(
            DelegateEvent(id=3 + n, delegate=2, event=event.model_dump(mode="json"))
            for n, event in enumerate(inner)
        ),
        DelegateResult(id=6, content="a.py", cause=2),
        reply(7, "str_replace_editor", **edit),
        FileEdit(id=8, **edit, **called(8)),
        FileEditResult(id=9, content="Edited", path="/w/a.py", new_hash="ab", cause=8),
    ]
    read = parse_trajectory(json.dumps(build_trajectory(log)), "x.json")
    grep, found, change, changed = read.events
    assert isinstance(grep, CmdRun) and grep.command == "grep x a.py"
    assert isinstance(found, CmdOutput) and found.exit_code == 1
    assert isinstance(change, FileEdit) and change.new_str == "2"
    assert isinstance(changed, FileEditResult) and changed.new_hash == "ab"
    assert (read.left_out, read.roots) == (0, ("/w",))
