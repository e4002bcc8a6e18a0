"""Tests of the adapter with which Harbor runs Resolver as an installed agent."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from resolver.cli.eval import bundled_suite
from resolver.config.templates import render
from tests.parts.runs import git, make_checkout

PARTS = Path(__file__).parents[1] / "parts"
TASK = bundled_suite() / "shell-spaces"
SOLUTION = TASK / "solution/fix.patch"


STUB = """#!/bin/sh
case $1 in
  resolve)
    mkdir -p "$6" && cp "$4" "$6/issue.md"
    git -C "$2" log --format=%s main >"$6/log"
    git clone -q "$2" "$6/clone" && cd "$6/clone" || exit 9
    sed -i 's/a - b/a + b/' sums.py && git diff >"$6/patch.diff" && exit "$EXIT_CODE" ;;
  eval) echo '{}' ;;
esac
"""
"""Stands for `resolver resolve REPOSITORY --issue FILE --output FOLDER`, `resolver eval atif`."""


class Trial:
    """The script with which Harbor runs Resolver, in the folder of a task."""

    def __init__(self, folder: Path) -> None:
        self.task, self.logs, self.bin = folder / "task", folder / "logs", folder / "bin"
        self.bin.mkdir()
        (self.bin / "resolver").write_text(STUB)
        (self.bin / "resolver").chmod(0o755)

    def run(self, instruction: str = "Add.", exit_code: int = 0) -> int:
        script = render(
            "eval/harbor_run.sh.j2",
            folder="/nowhere",
            instruction=shlex.quote(instruction),
            logs=shlex.quote(str(self.logs)),
        )
        path = f"{self.bin}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.bin), "EXIT_CODE": str(exit_code)}
        done = subprocess.run(["bash", "-c", script], cwd=self.task, env=environment, check=False)
        return done.returncode

    def output(self, name: str) -> str:
        return (self.logs / "resolver" / name).read_text()


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


@pytest.mark.parametrize("repository", ["none", "empty", "committed"])
def test_resolver_works_on_a_copy_and_its_change_is_applied(trial: Trial, repository: str) -> None:
    """A repository has a file that is not committed, which is part of the task as well."""
    if repository == "committed":
        make_checkout(trial.task, {"README.md": "Sums\n"})
    else:
        trial.task.mkdir()
    if repository == "empty":
        git(trial.task, "init", "-q")
    (trial.task / "sums.py").write_text("print(a - b)\n")
    assert trial.run("It's wrong: $(echo no)") == 0
    assert trial.output("issue.md") == "It's wrong: $(echo no)"
    commits = trial.output("log").splitlines()
    assert commits == ["Start of the task", *(["Begin"] if repository == "committed" else [])]
    assert (trial.task / "sums.py").read_text() == "print(a + b)\n"
    if repository == "committed":
        assert git(trial.task, "log", "--format=%s") == "Begin"
    assert json.loads((trial.logs / "trajectory.json").read_text()) == {}


@pytest.mark.parametrize(("exit_code", "expected"), [(3, 0), (4, 0), (5, 0), (1, 1), (2, 2)])
def test_a_result_without_a_change_is_no_failure_of_the_trial(
    trial: Trial, exit_code: int, expected: int
) -> None:
    trial.task.mkdir()
    (trial.task / "sums.py").write_text("print(a - b)\n")
    assert trial.run(exit_code=exit_code) == expected


@pytest.mark.nightly
@pytest.mark.parametrize("is_repository", [True, False])
def test_the_change_is_in_the_folder_of_the_task_and_the_log_becomes_a_trajectory(
    tmp_path: Path, is_repository: bool
) -> None:
    """A whole run, because Harbor's interface, the script and the real command have to agree."""
    folder, logs = tmp_path / "testbed", tmp_path / "logs"
    shutil.copytree(TASK / "environment/repository", folder)
    if is_repository:
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    apply = f"git apply - <<'END_OF_PATCH'\n{SOLUTION.read_text()}END_OF_PATCH"
    calls = [
        {"execute_bash": {"command": apply}},
        {"finish": {"title": "Count names once", "message": "Done", "task_completed": "true"}},
    ]
    replies = [{"calls": [call]} for call in calls]
    (tmp_path / "replies.yml").write_text(yaml.safe_dump(replies))
    script = PARTS / "harbor_trial.py"
    done = subprocess.run(
        [sys.executable, script, TASK, logs, folder],
        env={
            "HOME": str(tmp_path / "home"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(PARTS / "harbor_interface"),
            "LLM_MODEL": f"scripted:{tmp_path / 'replies.yml'}",
            "RESOLVER_VERIFY": "false",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    trial = json.loads(done.stdout)
    trajectory = json.loads((logs / "trajectory.json").read_text())
    assert trial["name"] == "resolver"
    assert trial["n_input_tokens"] == trajectory["final_metrics"]["total_prompt_tokens"]
    assert trajectory["schema_version"] == "ATIF-v1.7"
    # What the agent changed is where the verifier of the task looks for it.
    patch = subprocess.run(
        ["git", "apply", "--reverse", "--check", SOLUTION], cwd=folder, check=False
    )
    assert patch.returncode == 0
