"""Tests of `resolver replay`: a log's actions executed again, the first difference, and forks.

Whole runs, because the replay executes the log of one.
"""

import json
from pathlib import Path

from resolver.events.lifecycle import ModelReplied, Resumed
from tests.parts.model_endpoint import ModelEndpoint, tool_calls
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
