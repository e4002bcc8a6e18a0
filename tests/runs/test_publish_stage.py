"""Tests of the gate that a finished change passes before it is pushed anywhere."""

from pathlib import Path

import pytest

from resolver.errors import PolicyViolation
from resolver.git.tree import read_patch
from resolver.runs.pipeline import _publish
from resolver.runs.stages import ExecutedRun
from tests.github import reports
from tests.parts.github import GitHubServer
from tests.publishing.test_moved_pull_request import CI, Branch
from tests.runs.plain_values import executed_values, prepared_run, run_log, run_request


def test_a_change_for_a_persons_branch_is_judged_before_it_is_pushed_there(
    github: GitHubServer, tmp_path: Path
) -> None:
    branch = Branch(github, tmp_path)
    builder = branch.builder({CI: "on: push\n"})
    request = run_request(tmp_path)
    prepared = prepared_run(
        request, builder.workspace, task=builder.request.task, settings=builder.request.settings
    )
    change = builder.request.patch
    patch = read_patch(builder.workspace.git, change.base, change.tree, 10_000)
    executed = ExecutedRun(reports.outcome(), patch)
    values = executed_values(request).with_value(prepared).with_value(executed)
    with run_log(tmp_path / "events.jsonl") as log, pytest.raises(PolicyViolation, match=CI):
        list(_publish(values, prepared, executed, log, builder.forge))
    assert branch.tip() == branch.head
