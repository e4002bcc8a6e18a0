"""Tests of reading a repository's conventions at its default branch."""

from dataclasses import replace
from pathlib import Path

import pytest

from resolver.git.conventions import (
    MAX_SUBJECTS,
    read_conventions,
)
from resolver.git.workspace import Workspace
from resolver.models.repository import template_path
from tests.git.scenario import commit_all, make_repository
from tests.git.trees import Content, Link, commit_of, write_base

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


def test_the_newest_subjects_are_read(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source")
    for number in range(MAX_SUBJECTS + 5):
        commit_all(source, f"Change {number}\n\nbody")
    found = read_conventions(Workspace.clone(str(source), tmp_path / "clone.git"))
    assert len(found.subjects) == MAX_SUBJECTS
    assert found.subjects[:2] == (f"Change {MAX_SUBJECTS + 4}", f"Change {MAX_SUBJECTS + 3}")


@pytest.mark.parametrize(
    ("content", "template"),
    [
        ("\ufeff## What\n", "## What\n"),
        (b"\xff\xfe", ""),
        (b"a\0b", ""),
        (b"x" * 50_000, ""),
        (Link("secret"), ""),
    ],
)
def test_only_a_short_text_is_a_template(tmp_path: Path, content: Content, template: str) -> None:
    workspace = write_base(tmp_path / "r.git", {"pull_request_template.md": content, "secret": "x"})
    assert read_conventions(workspace).template == template


def test_work_on_another_branch_uses_the_default_branchs_conventions(tmp_path: Path) -> None:
    main = write_base(tmp_path / "r.git", {"pull_request_template.md": "main's"})
    develop = commit_of(main.git, {"pull_request_template.md": "develop's"}, main.base)
    moved = replace(main, base=develop, branch="develop", default=main.base)
    assert moved.read("pull_request_template.md") == b"develop's"
    assert read_conventions(moved).template == "main's"
