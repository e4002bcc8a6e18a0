"""Tests of `resolver replay`: a log's actions executed again, the first difference, and forks.

Whole runs, because the replay executes the log of one.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from resolver.events.base import EventBase
from resolver.events.lifecycle import Condensation, ModelReplied, Resumed, ServiceReplied
from resolver.events.log import Event
from tests.parts.model_endpoint import Answer, ModelEndpoint, reply, tool_calls
from tests.parts.runs import CommandLine, Ended, bash, finish, git, make_checkout

FILES = {"calc.py": "def add(a, b):\n    return a - b\n"}
EDIT = {"path": "calc.py", "old_str": "a - b", "new_str": "a + b"}


def record(command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path) -> Ended:
    checkout = make_checkout(tmp_path / "calc", FILES)
    model_endpoint.script(
        bash("pwd; date; mktemp; cat calc.py; sleep 0.01 & wait"),
        tool_calls([
            ("str_replace_editor", {"command": "view", "path": "calc.py"}),
            ("str_replace_editor", {"command": "str_replace", **EDIT}),
        ]),
        finish("Make add add"),
    )  # fmt: skip
    done = command_line.call_resolve(checkout)
    assert done.exit_code == 0, done.stderr
    return done


def test_a_log_is_forked_and_replays_without_a_model_elsewhere(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """A whole run, its forks and its replay, because a fork's sandbox is rebuilt up to a step of
    the run, a run that is over has to work again and be published, and another sandbox has to give
    the same results."""
    recorded = record(command_line, model_endpoint, tmp_path)
    before = recorded.everything
    second = [e.id for e in recorded.events if isinstance(e, ModelReplied)][1]
    model_endpoint.script(bash("sed -i 's/a - b/b + a/' calc.py"), finish("Turn it around"))
    asked = len(model_endpoint.requests)
    output = tmp_path / "fork"
    done = command_line.call(
        "replay", recorded.output, "--fork", str(second + 1), "--say", "Put b first.",
        "--output", output,
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert f"the fork keeps events 0 to {second - 1}" in done.stderr
    fork = Ended(done.exit_code, done.stdout, done.stderr, output)
    assert fork.outcome["run"] != recorded.outcome["run"]
    assert b"b + a" in (output / "patch.diff").read_bytes()
    assert [e.id for e in fork.events] == list(range(len(fork.events)))
    assert fork.events[:second] == recorded.events[:second]
    assert isinstance(fork.events[second], Resumed)
    assert "Put b first." in json.dumps(model_endpoint.requests[asked].body)
    assert git(tmp_path / "calc", "branch", "--list", "agent/*") == "agent/fix-it"

    model_endpoint.script(bash("echo more > more.txt"), finish("Say more"))
    last = str(len(recorded.events) - 1)
    options = ("--publish", "--output", tmp_path / "fork-of-end")
    done = command_line.call("replay", recorded.output, "--fork", last, *options)
    assert done.exit_code == 0, done.stderr
    assert git(tmp_path / "calc", "show", "agent/fix-it-2:more.txt") == "more"
    assert "a + b" in git(tmp_path / "calc", "show", "agent/fix-it-2:calc.py")

    asked = len(model_endpoint.requests)
    moved = tmp_path / "moved"
    (tmp_path / "calc").rename(moved)
    done = command_line.call("replay", recorded.output)
    assert done.exit_code == 2
    assert "--source" in done.stderr
    for name in ("LLM_MODEL", "LLM_API_KEY"):
        command_line.environment.pop(name)
    done = command_line.call("replay", recorded.output / "events.jsonl", "--source", moved)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "Same as the recording: 3 actions" in done.stdout
    assert len(model_endpoint.requests) == asked
    assert recorded.everything == before


LAST = 9
ENVIRONMENT = {
    "LLM_MODEL": "openai/gpt-4",  # its context window is small
    "RESOLVER_CONDENSER": "summarizing(keep_first=1,keep_last=2)",
    "RESOLVER_SERVICES": "condenser: {model: openai/notes, num_retries: 0,"
    " input_cost_per_token: 0.00001, output_cost_per_token: 0.00001}",
}


def work(body: dict[str, Any]) -> Answer:
    """The next command, by the last one whose output the model is shown; the notes of the
    condenser's model say how many steps it read."""
    if body["model"] == "notes":
        steps = re.findall(r"^step-(\d+)", body["messages"][-1]["content"], re.MULTILINE)
        return reply(f"- Read the steps {', '.join(steps)}.")
    shown = re.findall(r"step-(\d+)", json.dumps(body["messages"]))
    step = max(map(int, shown), default=0) + 1
    if step == 3:
        return bash("sed -i 's/a - b/a + b/' calc.py; cat calc.py; echo step-3; seq 1 1200")
    return finish("Make add add") if step > LAST else bash(f"echo step-{step}; seq 1 1200")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "calc", FILES)


def condensed(line: CommandLine, checkout: Path) -> Ended:
    """A run with these settings."""
    before = dict(line.environment)
    line.environment |= ENVIRONMENT
    done = line.call_resolve(checkout)
    line.environment = before
    return done


def replay(line: CommandLine, recorded: Ended, checkout: Path) -> Ended:
    """The same without a model, and without the settings of the recorded one."""
    for name in ("LLM_MODEL", "LLM_API_KEY", "LLM_BASE_URL"):
        line.environment.pop(name, None)
    log = recorded.output / "events.jsonl"
    return line.call_resolve(checkout, "--model", f"replay:{log}")


def of(events: list[Event], kind: type[EventBase]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_a_condensed_run_replays_exactly_without_its_settings(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    """A whole run and its replay, because the condensed conversation has to follow from the log
    alone."""
    model_endpoint.answer_with(work)
    recorded = condensed(command_line, checkout)
    assert recorded.exit_code == 0, recorded.stderr
    asked = len(model_endpoint.requests)
    replayed = replay(command_line, recorded, checkout)
    assert replayed.exit_code == 0, replayed.stderr
    assert replayed.outcome["divergences"] == []
    assert len(model_endpoint.requests) == asked
    services = of(recorded.events, ServiceReplied)
    assert services and {s.completion.model for s in services} == {"openai/notes"}
    assert recorded.outcome["iterations"] == LAST + 1, "the condenser's replies are no steps"
    before, now = of(recorded.events, Condensation), of(replayed.events, Condensation)
    assert len(before) >= 2
    assert all("Read the steps" in c.notes and "calc.py" in c.summary for c in before)
    assert [(c.notes, len(c.forgotten)) for c in now] == [
        (c.notes, len(c.forgotten)) for c in before
    ]
