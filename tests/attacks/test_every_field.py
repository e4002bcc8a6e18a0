"""A hostile text in each field of what a run reports and logs, in every place where it is read.

A field that is added to a report or to an event is tried without a change here.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from resolver.errors import LogError
from resolver.events.log import parse_line
from resolver.github.comments.comment_text import comment_body
from resolver.github.comments.pull_request_text import (
    commit_message,
    pull_request_body,
    pull_request_title,
)
from resolver.github.comments.report import Report
from resolver.models.run import PullRequest
from resolver.models.verification import CaseResult, CheckExecution
from resolver.trace.html import render_html
from resolver.trace.markdown import CommentTrace, render_markdown
from resolver.trace.text import live_line, render_text
from tests.attacks.test_rendered import check_markdown, check_terminal
from tests.github import reports

GOLDEN = Path(__file__).parents[1] / "events" / "golden-1.jsonl"

HOSTILE = (
    "\u202ex\U000e0041\x1b[31m`@octocat`\n\n@octocat <img src=x onerror=alert(1)></details> #1\n"
    "::add-mask::x\n##[group]x\n/approve"
)
UNSEEN = "\u202e\U000e0041\x1b"

OURS = {
    ("run",), ("pull_request", "url"),
    ("patch", "files", 0, "old_mode"), ("patch", "files", 0, "new_mode"),
}  # fmt: skip
"""Fields whose text is not from outside: the id of a run, the
address that GitHub gives a pull request, and git's modes."""


def places(value: Any, *path: str | int) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each text in nested dictionaries and lists."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, *path, key)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from places(item, *path, number)


def replaced(value: Any, path: tuple[str | int, ...], text: str) -> Any:
    """Return a copy of the value with this text in one place, after the one that is there."""
    if not path:
        return f"{value}{text}"
    if isinstance(value, dict):
        return {k: replaced(v, path[1:], text) if k == path[0] else v for k, v in value.items()}
    return [replaced(v, path[1:], text) if n == path[0] else v for n, v in enumerate(value)]


def full_report() -> Report:
    cases = (
        CaseResult(id="test_a.py::test_old", status="passed", message="m", file="a.py"),
        CaseResult(id="test_x", status="failed", message="boom", file="a.py"),
    )
    verification = reports.verification()
    head = CheckExecution(exit_code=1, seconds=1.0, cases=cases, output="out")
    check = verification.checks[0].model_copy(update={"head": head, "broken": ("test_x",)})
    url = "https://github.com/octo/demo/pull/3"
    return reports.report(
        verification=verification.model_copy(
            update={"checks": (check,), "verdict": "not_verified", "reason": "regression"}
        ),
        pull_request=PullRequest(title="T", body="B", number=3, url=url),
        warnings=("a warning",),
    )


def hostile_in_each(value: Any, accepts: Callable[[Any], bool], ours: set[Any]) -> tuple[Any, int]:
    """Return the value with the hostile text in each field that accepts it, and their number."""
    count = 0
    for path in list(places(value)):
        changed = value if path in ours else replaced(value, path, HOSTILE)
        if changed is not value and accepts(changed):
            value, count = changed, count + 1
    return value, count


def is_report(data: Any) -> bool:
    try:
        Report.model_validate(data)
    except ValidationError:
        return False
    return True


def is_event(data: Any) -> bool:
    try:
        parse_line(json.dumps(data))
    except LogError:
        return False
    return True


def test_a_hostile_text_in_any_field_of_a_report_is_inert() -> None:
    """A text with mentions, HTML, terminal codes, commands and invisible characters is the name of
    a branch, path, check and test, a message, a login and each other field of a report: it is inert
    in comment, pull request, title and commit."""
    data = full_report().model_dump()
    tried = 0
    for name, part in data.items():

        def accepts(changed: Any, name: str = name) -> bool:
            return is_report({**data, name: changed})

        hostile, count = hostile_in_each(part, accepts, {p[1:] for p in OURS if p[0] == name})
        if not count:
            continue
        tried += count
        report = Report.model_validate({**data, name: hostile})
        title, message = pull_request_title(report), commit_message(report)
        texts = [comment_body(report), pull_request_body(report)]
        for text in texts:
            check_markdown(text)
        for text in (*texts, title, message):
            assert not set(UNSEEN) & set(text), name
        assert "\n" not in title, name
        assert not re.search(r"^/[a-z]|(?<![\w`])@octocat", message, re.M), name
    assert tried > 30


def test_a_hostile_text_in_any_field_of_the_log_is_inert() -> None:
    """The same text is in each field of each kind of event: it is inert in the trace as Markdown,
    in a terminal and in a page."""
    lines = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    tried = 0
    for line in lines:
        hostile, count = hostile_in_each(line, is_event, {("kind",)})
        tried += count
        events = [parse_line(json.dumps(document)) for document in (lines[0], hostile)]
        check_markdown(CommentTrace(events).render(5_000))
        text = render_text(events) + (live_line(events[1]) or "")
        check_terminal(text)
        for rendered in (render_markdown(events), text):
            assert not set(UNSEEN) & set(rendered), line["kind"]
        assert "<img" not in render_html(events), line["kind"]
    assert tried > 100
