"""Tests of titles and commit subjects: which lines can be one, and how long they may be."""

import pytest

from resolver.github.comments.pull_request_text import commit_message, pull_request_title
from resolver.models.titles import MAX_TITLE_CHARACTERS, is_usable_title
from tests.github import reports


@pytest.mark.parametrize(
    "title",
    [
        "fix(parser): keep the sign",
        "[core] Keep the sign",
        "net/http: keep the sign",
        "Fixed #12 -- Kept the sign.",
        "gh-12: Keep the sign",
        "SHOP-12: Keep the sign",
        "🐛 Keep the sign",
        ":bug: keep the sign",
        "Parser no longer crashes on empty input",
        "Corrige el análisis de entradas vacías",
        "修复空输入时的崩溃",
        "Set does not override `__eq__`",
        "Fix #12 in the parser",
        "x" * MAX_TITLE_CHARACTERS,
    ],
)
def test_any_line_about_the_change_is_a_title(title: str) -> None:
    assert is_usable_title(title)


@pytest.mark.parametrize(
    "title",
    [
        "", " \n", "Add alpha()\n\nIt was missing.", "x" * (MAX_TITLE_CHARACTERS + 1),
        "# Add alpha()", "- Add alpha()", "1. Add alpha()", "**Add** alpha()",
        "Add [alpha](a.py)", "#12", "12", "Fixes #12", "fix issue #12.",
    ],
)  # fmt: skip
def test_other_text_and_the_number_of_an_issue_are_no_title(title: str) -> None:
    assert not is_usable_title(title)


def test_a_long_subject_is_truncated_between_words() -> None:
    report = reports.report(outcome=reports.outcome(title="Keep the sign " * 15))
    short = commit_message(report).split("\n")[0]
    assert len(short) <= MAX_TITLE_CHARACTERS and short.endswith("sign…")
    assert len(pull_request_title(report)) > 200
