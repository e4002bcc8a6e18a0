"""Tests of the commit for a new pull request whose base branch has got commits meanwhile."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import Settings
from resolver.git.git import Credential
from resolver.git.push import fetch_tip
from resolver.git.workspace import Workspace
from resolver.models.run import Patch
from resolver.publishing.commit_builder import CommitBuilder
from resolver.publishing.pull_request import publish
from tests.github import reports
from tests.parts.github import GitHubServer
from tests.publishing.test_commit_builder import publish_request
from tests.publishing.test_propose import RecordingForge

NAME = "octo/demo"
LINES = "".join(f"{n}\n" for n in range(9))


@pytest.mark.parametrize(
    ("base_moved", "late", "expected"),
    [
        ("leave", {"late.txt": "x\n"}, ["start"]),
        ("rebase", {"late.txt": "x\n"}, ["late"]),
        ("merge", {"late.txt": "x\n"}, ["late", "change"]),
        ("rebase", {"calc.py": "other\n"}, ["start"]),
    ],
    ids=["left by default", "on top", "merged", "left in conflict"],
)
def test_a_new_branch_starts_where_it_is_set(
    github: GitHubServer,
    tmp_path: Path,
    base_moved: Any,
    late: dict[str, str],
    expected: list[str],
) -> None:
    github.create_repository(NAME, {"calc.py": LINES})
    changed = github.commit(NAME, "changed", {"calc.py": f"first\n{LINES}"})
    url = f"{github.server_url}/{NAME}.git"
    credential = Credential(github.server_url, github.token_for("octo"))
    workspace = Workspace.clone(url, tmp_path / "clone.git", branch="main")
    assert fetch_tip(workspace.git, url, "changed", None) == changed
    tree = workspace.tree(changed)
    pushed_commit = github.commit(NAME, "main", late, "Late", "mona")

    settings = Settings(base_moved=base_moved) if base_moved != "leave" else Settings()
    request = replace(
        publish_request(),
        task=reports.task(reports.trigger(), source=url),
        patch=Patch(base=workspace.base, tree=tree),
        settings=settings,
        credential=lambda: credential,
    )
    builder = CommitBuilder(request, RecordingForge(tmp_path), workspace)
    *_, done = publish(builder)

    assert done.publication.branch is not None
    parents = github.repository(NAME).git.text("log", "-1", "--format=%P", done.publication.branch)
    names = {
        workspace.base: "start",
        pushed_commit: "late",
        builder.commit(tree, workspace.base): "change",
    }
    assert [names[parent] for parent in parents.split()] == expected
    assert ("has new commits since" in str(done.notices)) is ("calc.py" in late)
