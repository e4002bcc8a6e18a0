"""Tests of the scheduled evaluation of a repository."""

import os
import subprocess
from pathlib import Path

import yaml

from resolver.cli.agent_workflow import evaluation_workflow_text
from tests.parts.evaluation_tasks import write_suite
from tests.parts.runs import RESOLVER


def test_the_scheduled_workflow_writes_an_issue_if_fewer_tasks_are_resolved(tmp_path: Path) -> None:
    """Whole runs, because the script of a workflow starts the real commands one after the other."""
    write_suite(tmp_path / "suite", 1)
    workflow = yaml.safe_load(evaluation_workflow_text("octo/resolver@v1", "main", "suite"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/resolver").symlink_to(RESOLVER)
    steps = {step.get("name"): step for step in workflow["jobs"]["evaluate"]["steps"]}
    environment = {
        "HOME": str(tmp_path / "home"),
        "RESOLVER_VERIFY": "false",
        **workflow["jobs"]["evaluate"]["env"],
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "RESOLVER_RUNTIME": "local",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_SERVER_URL": "https://github.test",
        "GITHUB_REPOSITORY": "ada/sums",
        "GITHUB_RUN_ID": "7",
    }
    for model in ("oracle", "nop"):
        (tmp_path / "results").mkdir()
        subprocess.run(
            ["bash", "-e", "-c", steps["Run the tasks"]["run"]],
            env={**environment, "LLM_MODEL": model},
            cwd=tmp_path,
            check=True,
        )
        if model == "oracle":
            assert not (tmp_path / "issue.md").exists()
            (tmp_path / "results").rename(tmp_path / "baseline")
    issue = (tmp_path / "issue.md").read_text()
    assert "| nop | 0 of 1 (0 %, 0-79 %) | - |" in issue
    assert "1 is no longer resolved by nop" in issue and "- `task-000`" in issue
    assert "(https://github.test/ada/sums/actions/runs/7)" in issue
    assert "Evaluation of suite" in (tmp_path / "summary.md").read_text()
