"""The main job on a local checkout, from the command line to the branch.

Whole runs, because checkout, output folder, exit code and printed lines have to agree.
"""

import hashlib
import json
import os
import shlex
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from resolver.events.lifecycle import LimitsExtended
from resolver.events.observations import ErrorObservation
from resolver.sandbox.processes import descendant_pids
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.runs import (
    CommandLine,
    Ended,
    bash,
    finish,
    git,
    make_checkout,
)

FILES = {"calc.py": "def add(a, b):\n    return a - b\n", "README.md": "# calc\n"}
OUTPUT = {
    "request.json", "events.jsonl", "outcome.json", "patch.diff", "trace.md", "trace.html",
    "pull_request.md",
}  # fmt: skip
FIELDS = {
    "run", "state", "reason", "base", "commit", "tree", "branch", "pull_request", "iterations",
    "cost", "tokens",
}  # fmt: skip
FIX = bash("sed -i 's/a - b/a + b/' calc.py")
NOWHERE = {"LLM_MODEL": "", "LLM_BASE_URL": "http://127.0.0.1:1", "RESOLVER_RUNTIME": "docker",
           "DOCKER_HOST": "tcp://127.0.0.1:1"}  # fmt: skip
"""Neither a model nor an engine answers."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "calc", FILES)


def fingerprint(checkout: Path) -> dict[str, str]:
    """Everything of a checkout but objects and our branch's ref and reflog."""
    skipped = ("objects", "refs/heads/agent", "logs/refs/heads/agent")
    found = {}
    for path in sorted(checkout.rglob("*")):
        name = str(path.relative_to(checkout))
        if path.is_file() and not name.startswith(tuple(f".git/{s}" for s in skipped)):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[name] = f"{digest} {path.stat().st_mode:o} {path.stat().st_mtime_ns}"
    return found


def in_use(checkout: Path) -> Path:
    """Leave a checkout as somebody who works in it does: with hooks, and with changes of which one
    is staged. Return the file that a hook makes when it is run."""
    marker = checkout.parent / "hook-ran"
    for hook in ("post-checkout", "pre-commit", "post-commit", "reference-transaction"):
        path = checkout / ".git" / "hooks" / hook
        path.write_text(f"#!/bin/sh\ntouch {marker}\n")
        path.chmod(0o755)
    (checkout / "calc.py").write_text("# half-written\n")
    (checkout / "new.txt").write_text("not added\n")
    (checkout / "README.md").write_text("staged\n")
    git(checkout, "add", "README.md")
    marker.unlink(missing_ok=True)
    return marker


def resume_command_in(done: Ended) -> list[str]:
    """The words of the command that a run's last lines offer."""
    [line] = [line for line in done.stderr.splitlines() if line.startswith("  Continue ")]
    return shlex.split(line.removeprefix("  Continue "))


def test_a_fix_becomes_a_branch_a_pull_request_text_and_traces(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    """A whole run, in a process of its own: the story of the command line on a checkout, whose
    working tree, index, hooks and configuration are left alone. The agent is told of a repository
    that it has made inside."""
    marker = in_use(checkout)
    before = fingerprint(checkout)
    model_endpoint.script(
        bash("git init -q app && echo x >app/f; cat calc.py"),
        bash("rm -r app/.git; sed -i 's/a - b/a + b/' calc.py"),
        finish("Make add add\n\nIt subtracted."),
    )
    done = command_line.resolve(checkout, issue="# add() subtracts\n\n2 + 2 gives 0.")
    assert done.exit_code == 0, done.stderr
    said = json.dumps(model_endpoint.requests[1].body["messages"][-1])
    assert "app/ is a git repository of its own" in said
    assert git(checkout, "show", "agent/add-subtracts:app/f") == "x"
    outcome = done.outcome
    assert outcome.keys() >= FIELDS
    assert {p.name for p in done.output.iterdir()} == OUTPUT
    assert outcome["state"] == "finished"
    assert outcome["branch"] == "agent/add-subtracts"
    assert git(checkout, "rev-parse", "agent/add-subtracts") == outcome["commit"]
    assert git(checkout, "rev-parse", "agent/add-subtracts^{tree}") == outcome["tree"]
    assert git(checkout, "rev-parse", "agent/add-subtracts^") == outcome["base"]
    assert git(checkout, "show", "agent/add-subtracts:calc.py").endswith("return a + b")
    assert outcome["pull_request"]["title"] == "Make add add"
    assert "It subtracted." in outcome["pull_request"]["body"]
    assert (outcome["iterations"], outcome["cost"]) == (3, pytest.approx(0.00033))
    assert "agent/add-subtracts" in done.stderr
    assert str(done.output / "trace.html") in done.stderr
    assert fingerprint(checkout) == before
    assert not marker.exists()
    assert "uncommitted changes" in done.stderr
    assert git(checkout, "show", "agent/add-subtracts:README.md") == "# calc"


def test_a_dry_run_at_its_limit_is_completed_and_published_by_the_commands_that_it_offers(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    """Whole runs, because the command that the first one offers has to complete its work, which is
    still not to be published. Then another one publishes the tree that it has stored, without a
    model or a sandbox."""
    model_endpoint.script(FIX, bash("echo one"), bash("echo two"))
    options = ("--max-iterations", "3", "--no-publish", "--draft", "never")
    done = command_line.call_resolve(checkout, *options)
    assert done.exit_code == 4
    assert (done.outcome["state"], done.outcome["limit"]) == ("limit", "iterations")
    assert done.outcome["branch"] is None
    assert b"a + b" in (done.output / "patch.diff").read_bytes()
    command = resume_command_in(done)
    assert command == ["resolver", "resolve", "--resume", str(done.output), "--max-iterations", "6"]
    model_endpoint.script(finish("Make add add"))
    resumed = command_line.call(*command[1:])
    assert resumed.exit_code == 0 and f"resolver publish {done.output}" in resumed.stderr
    [granted] = [e.limits for e in done.events if isinstance(e, LimitsExtended)]
    assert granted.max_iterations == 6
    assert done.outcome["state"] == "finished"
    assert b"a + b" in (done.output / "patch.diff").read_bytes()
    assert git(checkout, "branch", "--list", "agent/*") == "", "the run was not to publish"

    asked = len(model_endpoint.requests)
    protected = {"RESOLVER_PROTECTED_PATHS": "calc.py"}
    failed = command_line.call("publish", done.output, **NOWHERE, **protected)
    assert failed.exit_code == 5, failed.stderr
    published = command_line.call("publish", done.output, **NOWHERE)
    assert published.exit_code == 0, published.stderr
    assert not done.outcome["pull_request"]["draft"], "the settings are those of the run"
    [branch] = git(checkout, "branch", "--list", "agent/*", "--format=%(refname:short)").split()
    assert git(checkout, "rev-parse", f"{branch}^{{tree}}") == done.outcome["tree"]
    trace = (done.output / "trace.md").read_text(encoding="utf-8")
    assert "the run had ended, and its change is to be published" in trace
    assert "cut off" not in trace
    again = command_line.call("publish", done.output, **NOWHERE)
    assert again.exit_code == 0 and "has already finished" in again.stderr
    assert len(model_endpoint.requests) == asked


def test_a_run_continues_in_a_new_sandbox_when_its_sandbox_is_killed(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    """Once from outside, and then by a command of the agent, which is not repeated forever.

    The new sandbox has the project's set-up too.
    """
    (checkout / ".agents").mkdir()
    (checkout / ".agents" / "setup.sh").write_text("export MODE=on; echo x > untracked\n")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "Set up")
    kill_all = "kill -9 $PPID; for p in /proc/[0-9]*; do kill -9 ${p#/proc/}; done"
    script = [
        bash("export TIMES=once; echo one >> count.txt"),
        bash('echo "two $TIMES" >> count.txt'),
        bash(f"echo three >> count.txt; {kill_all}"),
        bash("echo \"four $MODE\" >> count.txt; sed -i 's/a - b/a + b/' calc.py"),
        finish("Make add add"),
    ]
    of_other_tests = set(descendant_pids(os.getpid()))
    killed: list[int] = []

    def answer(body: dict[str, Any]) -> Answer:
        said = sum(message["role"] == "assistant" for message in body["messages"])
        if said == 1:
            killed.extend(set(descendant_pids(os.getpid())) - of_other_tests)
            for pid in killed:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return script[said]

    model_endpoint.answer_with(answer)
    done = command_line.call_resolve(checkout)
    assert killed
    assert done.exit_code == 0, done.stderr
    assert len(model_endpoint.requests) == len(script), "the log answers what was asked before"
    branch = done.outcome["branch"]
    counted = git(checkout, "show", f"{branch}:count.txt").splitlines()
    assert counted == ["one", "two once", "four on"]
    assert "untracked" not in git(checkout, "ls-tree", "--name-only", branch)
    assert done.outcome["divergences"] == []
    assert "a + b" in git(checkout, "show", f"{branch}:calc.py")
    errors = [event for event in done.events if isinstance(event, ErrorObservation)]
    assert [error.code for error in errors] == ["sandbox_lost"]
    assert done.stderr.count("it is rebuilt") == 3
