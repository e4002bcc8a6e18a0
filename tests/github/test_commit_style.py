"""Tests of commit subjects: what is added to the agent's, and how long they may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.comments.titles import (
    DEFAULT_SUBJECT_LENGTH,
    CommitSubject,
    change_kind_of,
    has_conventional_commits,
    max_subject_length,
    says_what_changed,
    write_subject,
)

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

FIX = CommitSubject("Keep the sign of an amount", ("src/parser/money.py", "tests/test_money.py"))


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
    assert says_what_changed(title)
    assert write_subject(PLAIN, CommitSubject(title)) == title


@pytest.mark.parametrize(
    ("text", "paths", "labels", "work"),
    [
        ("Close the file", ("a.py",), (), "fix"),
        ("Add a flag", ("a.py",), (), "feat"),
        ("Make it so", ("a.py",), ("kind/feature",), "feat"),
        ("Add a word", ("README.md", "docs/conf.py"), (), "docs"),
        ("Add a case", ("tests/test_a.py", "pkg/a_test.go"), (), "test"),
        ("Pin it", (".github/workflows/ci.yml",), (), "ci"),
        ("Close the file", ("a.py", "README.md"), (), "fix"),
        ("Close the file", (), (), "fix"),
    ],
)
def test_the_type_of_change_is_derived_from_files_labels_and_text(
    text: str, paths: tuple[str, ...], labels: tuple[str, ...], work: str
) -> None:
    assert change_kind_of(CommitSubject(text, paths, labels)) == work


def test_a_proper_name_keeps_its_letters() -> None:
    for text in ("PyYAML is pinned", "README names it", "iOS is named"):
        assert write_subject(CONVENTIONAL, CommitSubject(text)) == f"fix: {text}"


def test_a_long_subject_is_truncated_between_words() -> None:
    subject = CommitSubject("Keep the sign " * 20)
    short = write_subject(PLAIN, subject, limit=max_subject_length(PLAIN))
    assert len(short) <= DEFAULT_SUBJECT_LENGTH and short.endswith("sign…")
    assert len(write_subject(PLAIN, subject)) > 200


def test_subjects_may_be_long_if_the_repositorys_are() -> None:
    long = f"Fix {'a long thing ' * 7}".strip()
    assert max_subject_length([long] * 9) == len(long)
    assert max_subject_length([long * 2] * 9) == 100


@given(st.lists(st.text(max_size=60), max_size=30), st.text(min_size=1, max_size=80))
def test_any_history_and_any_text_give_one_line(subjects: list[str], text: str) -> None:
    limit = max_subject_length(subjects)
    line = write_subject(subjects, CommitSubject(text), limit=limit)
    assert "\n" not in line and len(line) <= limit
    assert write_subject(subjects, CommitSubject(line), limit=limit) == line
    has_conventional_commits(subjects)
