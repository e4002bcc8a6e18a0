"""Tests of pointing out new files that look like scratch work."""

from typing import Literal

import pytest

from resolver.github.comments.comment_text import comment_body, looks_like_scratch
from resolver.models.run import FileChange, Patch, RunState
from tests.github import reports


def change(path: str, status: Literal["added", "modified"] = "added") -> FileChange:
    old = "000000" if status == "added" else "100644"
    return FileChange(
        path=path, status=status, old_mode=old, new_mode="100644", additions=3, deletions=0
    )


@pytest.mark.parametrize(
    "path",
    [
        "reproduce_issue.py", "repro/settings.py", "check_sign.py", "verify-fix.js", "debug.sh",
        "src/parser.py.orig", "run.log", "tests/test_reproduce.py", "scratch.txt", "test_fix.py",
    ],
)  # fmt: skip
def test_scripts_copies_and_logs_look_like_scratch_work(path: str) -> None:
    assert looks_like_scratch(change(path))
    assert not looks_like_scratch(change(path, "modified")), "it was there before"


@pytest.mark.parametrize(
    "path",
    ["src/check.py", "tests/test_parser.py", "docs/update.txt", "parser.py", "checks.py",
     "test_data.json", "CHANGES", "lib/patch.js"],
)  # fmt: skip
def test_source_and_tests_do_not_look_like_scratch_work(path: str) -> None:
    assert not looks_like_scratch(change(path))


FILES = (change("debug_sel.py"), change("a.py", "modified"), change("reproduce_issue.py"))
PATCH = Patch(base="a" * 40, tree="b" * 40, files=FILES)


def rows_after_notice(text: str) -> tuple[list[str], list[str]]:
    """The rows of the table of the change, and of the one of scratch files."""
    change, notice, scratch = text.partition("look like scratch work")
    assert notice
    rows = [[x for x in part.splitlines() if x.startswith("| `")] for part in (change, scratch)]
    return rows[0], rows[1]


def test_a_run_that_ended_at_a_limit_lists_scratch_files_separately() -> None:
    ended = reports.outcome("", state=RunState.LIMIT, limit="iterations", task_completed=False)
    body = comment_body(reports.report(outcome=ended, patch=PATCH, branch=None))
    change, scratch = rows_after_notice(body)
    assert change == ["| `a.py` | changed | +3 −0 |"]
    assert scratch == [
        "| `debug_sel.py` | new | +3 −0 |", "| `reproduce_issue.py` | new | +3 −0 |",
    ]  # fmt: skip
