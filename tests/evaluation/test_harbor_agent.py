"""Tests of the adapter with which Harbor runs Resolver as an installed agent."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from resolver.evaluation.attempt import scripted_replies
from resolver.evaluation.task_format import REPOSITORY_FOLDER, SOLUTION_PATCH, bundled_suite

PARTS = Path(__file__).parents[1] / "parts"
TASK = bundled_suite() / "shell-spaces"


@pytest.mark.parametrize("is_repository", [True, False])
def test_the_change_is_in_the_folder_of_the_task_and_the_log_becomes_a_trajectory(
    tmp_path: Path, is_repository: bool
) -> None:
    folder, logs = tmp_path / "testbed", tmp_path / "logs"
    shutil.copytree(TASK / REPOSITORY_FOLDER, folder)
    if is_repository:
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (tmp_path / "replies.yml").write_text(
        yaml.safe_dump(scripted_replies((TASK / SOLUTION_PATCH).read_bytes()))
    )
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
        ["git", "apply", "--reverse", "--check", TASK / SOLUTION_PATCH], cwd=folder, check=False
    )
    assert patch.returncode == 0
