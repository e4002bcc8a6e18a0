"""Tests of reading a repository's conventions at its default branch."""

from pathlib import Path

import pytest

from resolver.git.conventions import (
    MAX_SUBJECTS,
    read_conventions,
)
from resolver.git.workspace import Workspace, workspace_at_branch
from resolver.models.repository import template_path
from tests.git.scenario import commit_all, link, make_repository, plain_git, write

GITHUB = ".github/pull_request_template.md"
SEVERAL = ".github/PULL_REQUEST_TEMPLATE"


@pytest.mark.parametrize(
    ("paths", "chosen"),
    [
        (["pull_request_template.md", "docs/pull_request_template.md"], "pull_request_template.md"),
        (["PULL_REQUEST_TEMPLATE.md", GITHUB], GITHUB),
        ([".GitHub/Pull_Request_Template.MD"], ".GitHub/Pull_Request_Template.MD"),
        (["docs/PULL_REQUEST_TEMPLATE.txt"], "docs/PULL_REQUEST_TEMPLATE.txt"),
        (["PULL_REQUEST_TEMPLATE"], "PULL_REQUEST_TEMPLATE"),
        ([".github/pull_request_template.txt", GITHUB], GITHUB),
        ([f"{SEVERAL}/fix.md"], f"{SEVERAL}/fix.md"),
        ([f"{SEVERAL}/a.md", f"{SEVERAL}/default.md"], f"{SEVERAL}/default.md"),
        ([f"{SEVERAL}/a.md", f"{SEVERAL}/b.md"], ""),
        (["docs/PULL_REQUEST_TEMPLATE/a.md", GITHUB], GITHUB),
        (["src/pull_request_template.md", "pull_request_template.md.bak", "README.md"], ""),
        ([], ""),
    ],
)
def test_the_template_is_where_github_looks_for_it(paths: list[str], chosen: str) -> None:
    assert template_path(paths) == chosen


def test_all_conventions_are_read(tmp_path: Path) -> None:
    files: dict[str | bytes, bytes | str] = {
        ".github/PULL_REQUEST_TEMPLATE.md": "\ufeff## What\n",
    }
    source = make_repository(tmp_path / "source", files)
    for number in range(MAX_SUBJECTS + 5):
        commit_all(source, f"Change {number}\n\nbody")
    found = read_conventions(Workspace.clone(str(source), tmp_path / "clone.git"))
    assert found.template == "## What\n"
    assert len(found.subjects) == MAX_SUBJECTS
    assert found.subjects[:2] == (f"Change {MAX_SUBJECTS + 4}", f"Change {MAX_SUBJECTS + 3}")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a\0b", b"x" * 50_000])
def test_an_oversized_or_binary_template_is_ignored(tmp_path: Path, content: bytes) -> None:
    source = make_repository(tmp_path / "source", {"pull_request_template.md": content})
    assert read_conventions(Workspace.clone(str(source), tmp_path / "clone.git")).template == ""


def test_a_symlink_is_not_used_as_a_template(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", {"secret": "x"})
    link(source, "pull_request_template.md", "secret")
    commit_all(source)
    assert read_conventions(Workspace.clone(str(source), tmp_path / "clone.git")).template == ""


def test_work_on_another_branch_uses_the_default_branchs_conventions(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", {"pull_request_template.md": "main's"})
    plain_git(source, "checkout", "-q", "-b", "develop")
    write(source, "pull_request_template.md", "develop's")
    commit_all(source)
    plain_git(source, "checkout", "-q", "main")
    served = f"file://{source}"
    clone = Workspace.clone(str(source), tmp_path / "clone.git")
    moved = workspace_at_branch(
        Workspace(clone.folder, served, clone.base, clone.branch), "develop", None
    )
    assert moved.branch == "develop" and moved.base != clone.base
    assert moved.read("pull_request_template.md") == b"develop's"
    assert read_conventions(moved).template == "main's"
