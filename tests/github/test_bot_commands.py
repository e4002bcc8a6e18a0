"""No line of a model's text is a command to another bot, and no link leads elsewhere."""

import re
from typing import Any

import pytest

from resolver.github.comments.pull_request_text import commit_message, pull_request_body
from resolver.github.text.comment_markdown import safe_markdown
from resolver.github.text.markdown import (
    fence,
    format_title,
    single_line,
    without_bot_commands,
    without_notifications,
)
from tests.github import reports

COMMANDS = (
    "/approve",
    "/lgtm cancel",
    "/merge",
    "/retest",
    "/ok-to-test",
    "!merge",
    "bors r+",
    "bors: try",
    "@dependabot merge",
    "@mergifyio refresh",
    "retest this please",
    "ok to test",
)
LIVE = re.compile(
    r"(?im)^\s*(?:[-*+>]\s+)*(?:/(?:approve|lgtm|merge|retest|ok-to-test)\b|!merge|bors:? |"
    r"@(?:dependabot|mergifyio) |retest this|ok to test)"
)
SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.attack
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "form", ["{}", "Done.\n{}", "- {}", "> {}", "```\n{}\n```", "    {}", "1. {}", "  {}"]
)
def test_no_line_begins_with_a_command(form: str, command: str) -> None:
    """The model writes commands to other bots, such as `/approve`: no line begins with one."""
    text = form.format(command)
    assert LIVE.search(command)
    for written in (
        safe_markdown(text),
        fence(text),
        single_line(text),
        without_notifications(text),
    ):
        assert not LIVE.search(written), written
    assert not LIVE.search(format_title(command))
    assert without_bot_commands(without_bot_commands(text)) == without_bot_commands(text)


@pytest.mark.parametrize(
    "text",
    ["/usr/bin/env python", "/etc/passwd", "!= 3", "@property", "and/or", "boring", "only /"],
)
def test_ordinary_lines_stay_as_they_are(text: str) -> None:
    assert without_bot_commands(text) == text


@pytest.mark.attack
def test_a_pull_request_and_its_commit_contain_no_commands() -> None:
    """The model's report contains bot commands: pull request and commit message command nobody."""
    words = "\n\n".join(["/approve", "bors r+", "@dependabot merge", "Fine. " * 20 + "/lgtm"])
    made: Any = reports.report(outcome=reports.outcome(message=f"/merge\n\n{words}", change=words))
    assert not LIVE.search(pull_request_body(made))
    assert not LIVE.search(commit_message(made))


@pytest.mark.attack
@pytest.mark.parametrize("text", [SHA, f"octo/calc@{SHA[:7]}", f"mona@{SHA}", f"see {SHA}."])
def test_commits_in_a_text_are_no_links(text: str) -> None:
    """The model writes full commit hashes and OWNER/NAME@SHA: they don't become links."""
    assert re.search(r"`(?:[\w/]+@)?0123456[0-9a-f]*`", safe_markdown(text))
    for written in (format_title(text), without_notifications(text)):
        assert not re.search(r"\b[0-9a-f]{40}\b|@[0-9a-f]{7}", written)
        assert written.replace("\u2060", "") == text


@pytest.mark.attack
@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("[GitHub](https://evil.example/x)", "GitHub (`https://evil.example/x`)"),
        ("https://evil.example/?d=1", "`https://evil.example/?d=1`"),
        ("<https://evil.example/?d=1>", "`https://evil.example/?d=1`"),
        ("www.evil.example/a", "`www.evil.example/a`"),
        ("[docs](https://forge.test/o/r/wiki)", "[docs](<https://forge.test/o/r/wiki>)"),
        ("https://forge.test/o/r/wiki", "<https://forge.test/o/r/wiki>"),
        ("[x](https://forge.test/s?q=secret)", "x (`https://forge.test/s?q=secret`)"),
        ("[x](https://forge.test.evil.example)", "x (`https://forge.test.evil.example`)"),
        (
            "[https://evil.example](https://forge.test/o)",
            "[`https://evil.example`](<https://forge.test/o>)",
        ),
    ],
)
def test_only_pages_of_the_forge_are_links(text: str, written: str) -> None:
    """The model links to a host under another name, or with data in the query: it is shown as
    text."""
    assert safe_markdown(text, forge_host="forge.test") == written
