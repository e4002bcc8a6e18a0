"""Tests of commit subjects: what is added to the agent's, and how long they may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.comments.titles import has_conventional_commits, write_subject
from resolver.models.titles import MAX_TITLE_CHARACTERS, is_usable_title

CONVENTIONAL = [
    "feat(parser): read dates with a zone (#41)",
    "fix(api): answer 404 for an unknown user",
    "fix: close the file",
    "chore(deps): bump ruff from 0.1 to 0.2",
    "docs: say how to install",
    "fix(parser)!: refuse empty input",
    "test(api): cover the error page",
]
PLAIN = [
    "Fix the crash on start",
    "Add a retry to the client",
    "Remove the old cache",
    "Use pathlib in the loader",
    "Handle a missing file",
    "Document the settings",
]
GENERATED = ["Merge branch 'x'", 'Revert "y"', "v1.2.3", "Bump a from 1 to 2", "Release 2"] * 3

FIX = "Keep the sign of an amount"


@pytest.mark.parametrize(
    ("subjects", "expected"),
    [
        pytest.param(CONVENTIONAL, "fix: keep the sign of an amount", id="conventional"),
        pytest.param(PLAIN, "Keep the sign of an amount", id="plain"),
        pytest.param([], "Keep the sign of an amount", id="none"),
        pytest.param(CONVENTIONAL[:4], "Keep the sign of an amount", id="too few"),
        pytest.param(GENERATED, "Keep the sign of an amount", id="generated"),
    ],
)
def test_only_a_missing_type_is_added(subjects: list[str], expected: str) -> None:
    assert write_subject(subjects, FIX) == expected


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
    ],
)
def test_a_title_in_a_style_of_its_own_is_unchanged(title: str) -> None:
    assert is_usable_title(title)
    assert write_subject(PLAIN, title) == title


@pytest.mark.parametrize(
    "title",
    [
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


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Close the file", "fix: close the file"),
        ("Add a flag", "feat: add a flag"),
        ("docs: Add a word", "docs: Add a word"),
    ],
)
def test_the_missing_type_is_that_of_a_fix_or_a_feature(text: str, subject: str) -> None:
    assert write_subject(CONVENTIONAL, text) == subject


def test_a_proper_name_keeps_its_letters() -> None:
    for text in ("PyYAML is pinned", "README names it", "iOS is named"):
        assert write_subject(CONVENTIONAL, text) == f"fix: {text}"


def test_a_long_subject_is_truncated_between_words() -> None:
    text = "Keep the sign " * 20
    short = write_subject(PLAIN, text, limit=MAX_TITLE_CHARACTERS)
    assert len(short) <= MAX_TITLE_CHARACTERS and short.endswith("sign…")
    assert len(write_subject(PLAIN, text)) > 200


@given(st.lists(st.text(max_size=60), max_size=30), st.text(min_size=1, max_size=80))
def test_any_history_and_any_text_give_one_line(subjects: list[str], text: str) -> None:
    line = write_subject(subjects, text, limit=MAX_TITLE_CHARACTERS)
    assert "\n" not in line and len(line) <= MAX_TITLE_CHARACTERS
    assert write_subject(subjects, line, limit=MAX_TITLE_CHARACTERS) == line
    has_conventional_commits(subjects)
