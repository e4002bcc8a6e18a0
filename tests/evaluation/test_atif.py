"""Tests of the trajectory format, on a recorded run and on a run with a delegate."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from resolver.cli.main import run
from resolver.evaluation.atif import build_trajectory
from resolver.events.actions import CmdRun, Delegate, Message
from resolver.events.base import Source
from resolver.events.lifecycle import DelegateEvent, ModelReplied
from resolver.events.log import Event, read_log
from resolver.events.observations import CmdOutput, DelegateResult
from resolver.models.run import Completion, Tokens

RECORDING = Path(__file__).parents[2] / "resolver" / "demo" / "recording.jsonl"


SCHEMA = json.loads(Path(__file__).with_name("atif-1.7.schema.json").read_text())


def check(trajectory: dict[str, Any]) -> None:
    """Check a trajectory by the schema, and by the rules that a schema can't state."""
    Draft202012Validator(SCHEMA).validate(trajectory)
    assert [step["step_id"] for step in trajectory["steps"]] == list(
        range(1, len(trajectory["steps"]) + 1)
    )
    nested = {
        subtrajectory["trajectory_id"]
        for subtrajectory in trajectory.get("subagent_trajectories", [])
    }
    for step in trajectory["steps"]:
        if "timestamp" in step:
            datetime.fromisoformat(step["timestamp"])
        if step["source"] != "agent":
            assert not {"model_name", "tool_calls", "metrics", "reasoning_content"} & step.keys()
        calls = {call["tool_call_id"] for call in step.get("tool_calls", [])}
        for result in step.get("observation", {}).get("results", []):
            assert result.get("source_call_id") in {None, *calls}
            for reference in result.get("subagent_trajectory_ref", []):
                assert reference["trajectory_id"] in nested
    for subtrajectory in trajectory.get("subagent_trajectories", []):
        check(subtrajectory)


def test_a_recorded_run_is_a_valid_trajectory() -> None:
    events = list(read_log(RECORDING))
    trajectory = build_trajectory(events)
    check(trajectory)
    replies = [event for event in events if isinstance(event, ModelReplied)]
    agent_steps = [step for step in trajectory["steps"] if step["source"] == "agent"]
    assert len(agent_steps) == len(replies)
    total = sum(reply.completion.tokens.input for reply in replies)
    assert trajectory["final_metrics"]["total_prompt_tokens"] == total
    # The last call is `finish`, which nothing answers.
    assert all("observation" in step for step in agent_steps[:-1])


def test_the_command_writes_a_trajectory(capsys: Any) -> None:
    assert run(["eval", "atif", str(RECORDING)], {}) == 0
    check(json.loads(capsys.readouterr().out))


def reply(id: int, **values: Any) -> ModelReplied:
    tokens = Tokens(input=10, output=2, cached=4)
    return ModelReplied(id=id, completion=Completion(model="m", tokens=tokens, **values))


def test_what_a_delegate_did_is_a_nested_trajectory() -> None:
    inner: list[Event] = [
        reply(0, text="I look", cost=0.1),
        CmdRun(id=1, command="ls", reply=0),
        CmdOutput(id=2, content="a.py", exit_code=0, cause=1),
    ]
    events: list[Event] = [
        Message(id=0, content="Fix it", source=Source.USER),
        reply(1, text="<delegate>", cost=0.2),
        Delegate(id=2, agent="LocAgent", task="Find it", reply=1),
        *(
            DelegateEvent(id=3 + n, delegate=2, event=event.model_dump(mode="json"))
            for n, event in enumerate(inner)
        ),
        DelegateResult(id=6, content="a.py", cause=2),
    ]
    trajectory = build_trajectory(events)
    check(trajectory)
    (nested,) = trajectory["subagent_trajectories"]
    assert nested["steps"][0]["tool_calls"][0]["arguments"] == {"command": "ls"}
    (result,) = trajectory["steps"][1]["observation"]["results"]
    assert result["subagent_trajectory_ref"] == [{"trajectory_id": nested["trajectory_id"]}]
    # The format counts what subagents cost, too.
    assert trajectory["final_metrics"]["total_cost_usd"] == pytest.approx(0.3)


def test_arguments_that_are_no_json_are_kept_as_text() -> None:
    call = {"id": "c1", "name": "execute_bash", "arguments": "{broken"}
    trajectory = build_trajectory([reply(0, tool_calls=[call])])
    check(trajectory)
    assert trajectory["steps"][0]["tool_calls"][0]["arguments"] == {"raw": "{broken"}
    assert "total_cost_usd" not in trajectory["final_metrics"]
