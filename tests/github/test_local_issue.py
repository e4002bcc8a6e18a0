"""Tests of an issue in a file, and of its pull request, which is only text."""

from pathlib import Path

import pytest

from resolver.errors import UsageError
from resolver.github.local_issue import local_trigger, parse_issue, read_issue_file
from resolver.publishing.pull_request import render_pull_request
from tests.github import reports

TRIGGER = local_trigger(Path("/home/me/x"), run="run-1", login="me", at=reports.WHEN)


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ("# It breaks\n\nPlease help\n", "It breaks", "Please help"),
        ("\n\nIt breaks\nnow", "It breaks", "now"),
        ("\ufeff## It breaks", "It breaks", ""),
        ("It breaks\r\n\r\none\r\ntwo", "It breaks", "one\ntwo"),
        ("Seen <!-- SECRET -->\n\nbody", "Seen", "body"),
    ],
)
def test_the_first_line_is_the_title(tmp_path: Path, text: str, title: str, body: str) -> None:
    file = tmp_path / "issue.md"
    file.write_bytes(text.encode())
    task = read_issue_file(file, TRIGGER, "main")
    assert (task.title, task.body, task.source) == (title, body, "/home/me/x")
    assert bool(task.left_out) == ("SECRET" in text)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b" \n\n\t", "has no title"),
        (b"#\n", "has no title"),
        (b"<!-- only hidden -->", "has no title"),
        (b"\x89PNG\r\n\x1a\n\x00", "is not UTF-8"),
        (b"title\x00body", "is a binary file"),
        (b"x" * 1_000_001, "is larger"),
        (None, "there is no file"),
    ],
)
def test_an_invalid_issue_file_is_a_usage_error(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "issue.md"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=words) as caught:
        read_issue_file(file, TRIGGER, "main")
    assert caught.value.next_step
    with pytest.raises(UsageError, match="is a folder"):
        read_issue_file(tmp_path, TRIGGER, "main")


def test_the_local_pull_request_is_only_text() -> None:
    task = parse_issue("# It breaks\n", "the issue", TRIGGER, "main")
    report = reports.report(trigger=TRIGGER, task=task, outcome=reports.outcome(""))
    pull = render_pull_request(report)
    assert (pull.title, pull.number, pull.url) == ("It breaks", None, None)
    assert "Fixes" not in pull.body
