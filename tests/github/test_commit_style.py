"""Tests of commit subjects in the style of the repository."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.comments.titles import (
    DEFAULT_SUBJECT_LENGTH,
    CommitSubject,
    change_kind_of,
    read_style,
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
UPPER = [
    "Fix the crash on start",
    "Add a retry to the client",
    "Remove the old cache",
    "Use pathlib in the loader",
    "Handle a missing file",
    "Document the settings",
]
LOWER = [subject[0].lower() + subject[1:] for subject in UPPER]
BRACKETS = [
    f"[{area}] {words}"
    for area, words in zip(["core", "ui", "core", "docs", "core", "ui"], UPPER, strict=True)
]
GO = [
    "net/http: close idle connections",
    "cmd/go: report the module's version",
    "net/http: fix a data race",
    "runtime: align the stack",
    "cmd/compile, runtime: inline more calls",
    "net/url: keep an empty query",
]
DJANGO = [
    "Fixed #36123 -- Handled an empty list in the paginator.",
    "Refs #35000 -- Removed an unused import.",
    "Fixed #35990 -- Made the test client keep cookies.",
    "Fixed #36001 -- Corrected the docs of the cache.",
    "Added a release note.",
    "Fixed #35877 -- Escaped the name in the error page.",
]
CPYTHON = [
    "gh-12345: Fix a crash in the tokenizer (#12399)",
    "gh-12001: Document the new option",
    "gh-11111: Speed up the parser (GH-11112)",
    "gh-12222: Remove dead code",
    "Fix a typo in the docs",
    "gh-12223: Add a test",
]
TICKETS = [f"SHOP-{100 + n}: {words}" for n, words in enumerate(UPPER)]
GITMOJI = [
    "🐛 Fix the crash",
    "✨ Add dark mode",
    "📝 Describe the API",
    "🐛 Close the file",
    "♻️ Split the module",
]
GITMOJI_CODES = [
    ":bug: fix the crash",
    ":sparkles: add dark mode",
    ":memo: describe it",
    ":bug: close it",
    ":art: tidy",
]

FIX = CommitSubject(
    text="Keep the sign of an amount",
    paths=("src/parser/money.py", "tests/test_money.py"),
    issue=12,
)


def with_words(words: str, *paths: str, issue: int | None = 12, **more: str) -> CommitSubject:
    return CommitSubject(text=words, paths=paths or FIX.paths, issue=issue, **more)  # type: ignore[arg-type]


NOT_WRITTEN = ["Merge branch 'x'", 'Revert "y"', "v1.2.3", "Bump a from 1 to 2", "Release 2"] * 3


@pytest.mark.parametrize(
    ("subjects", "expected"),
    [
        pytest.param(CONVENTIONAL, "fix(parser): keep the sign of an amount", id="conventional"),
        pytest.param(UPPER, "Keep the sign of an amount", id="upper"),
        pytest.param(LOWER, "keep the sign of an amount", id="lower"),
        pytest.param(BRACKETS, "[parser] Keep the sign of an amount", id="brackets"),
        pytest.param(GO, "src/parser: keep the sign of an amount", id="go"),
        pytest.param(DJANGO, "Fixed #12 -- Keep the sign of an amount.", id="django"),
        pytest.param(CPYTHON, "gh-12: Keep the sign of an amount", id="cpython"),
        pytest.param(TICKETS, "Keep the sign of an amount", id="tickets"),
        pytest.param(GITMOJI, "🐛 Keep the sign of an amount", id="gitmoji"),
        pytest.param(GITMOJI_CODES, ":bug: keep the sign of an amount", id="gitmoji codes"),
        pytest.param([], "Keep the sign of an amount", id="none"),
        pytest.param(CONVENTIONAL[:4], "Keep the sign of an amount", id="too few"),
        pytest.param(NOT_WRITTEN, "Keep the sign of an amount", id="not written by people"),
    ],
)
def test_a_subject_follows_the_style_of_the_repository(subjects: list[str], expected: str) -> None:
    assert write_subject(read_style(subjects), FIX) == expected


@pytest.mark.parametrize(
    "subjects", [CONVENTIONAL, UPPER, LOWER, GO, DJANGO, CPYTHON, GITMOJI, TICKETS]
)
def test_a_subject_in_the_right_style_is_unchanged(subjects: list[str]) -> None:
    style = read_style(subjects)
    once = write_subject(style, FIX)
    assert write_subject(style, with_words(once)) == once


def test_a_known_area_precedes_the_folders_name() -> None:
    subject = with_words("Close it", "net/http/server.go", "net/http/server_test.go")
    assert write_subject(read_style(GO), subject) == "net/http: close it"
    assert (
        write_subject(read_style(BRACKETS), with_words("Close it", "core/a.py"))
        == "[core] Close it"
    )


def test_files_of_several_areas_have_no_scope() -> None:
    subject = with_words("Close it", "parser/a.py", "api/b.py")
    assert write_subject(read_style(CONVENTIONAL), subject) == "fix: close it"


def test_a_ticket_is_named_if_the_issue_names_one() -> None:
    style = read_style(TICKETS)
    told = with_words("Keep the sign", ticket_text="see SHOP-481 and OTHER-1")
    assert write_subject(style, told) == "SHOP-481: Keep the sign"
    assert (
        write_subject(style, with_words("Keep the sign", ticket_text="OTHER-1")) == "Keep the sign"
    )


def test_without_a_number_none_is_invented() -> None:
    assert write_subject(read_style(DJANGO), with_words("Keep it", issue=None)) == "Keep it."


@pytest.mark.parametrize(
    ("words", "paths", "labels", "work"),
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
    words: str, paths: tuple[str, ...], labels: tuple[str, ...], work: str
) -> None:
    assert change_kind_of(CommitSubject(text=words, paths=paths, labels=labels)) == work


def test_the_types_of_changes_are_those_of_the_repository() -> None:
    style = read_style(["bugfix: a", "feature: b", "doc: c", "tests: d", "bugfix: e"])
    assert write_subject(style, FIX) == "bugfix: keep the sign of an amount"
    assert write_subject(style, with_words("Add it", "a.py")) == "feature: add it"


def test_a_prefix_that_the_repository_does_not_use_is_removed() -> None:
    assert (
        write_subject(read_style(UPPER), with_words("fix(money): keep the sign")) == "Keep the sign"
    )
    assert write_subject(read_style([]), with_words("fix: keep it")) == "fix: keep it"


def test_a_proper_name_keeps_its_letters() -> None:
    for words in ("PyYAML is pinned", "README names it", "iOS is named"):
        assert write_subject(read_style(LOWER), with_words(words)) == words
        assert write_subject(read_style(UPPER), with_words(words)) == words


def test_a_long_subject_is_truncated_between_words() -> None:
    style = read_style(UPPER)
    subject = with_words("Keep the sign " * 20)
    short = write_subject(style, subject, limit=style.max_length)
    assert len(short) <= DEFAULT_SUBJECT_LENGTH and short.endswith("sign…")
    assert len(write_subject(style, subject)) > 200


def test_subjects_may_be_long_if_the_repositorys_are() -> None:
    assert (
        read_style([f"Fix {'a long thing ' * 7}"] * 9).max_length
        == len(f"Fix {'a long thing ' * 7}") - 1
    )


def test_references_in_a_subject_are_inert() -> None:
    hostile = ["[@octocat] a", "[x](http://evil) b", "[#1] c", "[a b] d", "[<!--] e"] * 2
    assert write_subject(read_style(hostile), FIX) == "Keep the sign of an amount"
    areas = read_style([f"[{'x' * 50}] a"] * 6).areas
    assert areas == ()


@given(st.lists(st.text(max_size=60), max_size=30), st.text(min_size=1, max_size=80))
def test_any_history_and_any_text_give_one_line(subjects: list[str], words: str) -> None:
    style = read_style(subjects)
    line = write_subject(style, with_words(words), limit=style.max_length)
    assert "\n" not in line and len(line) <= style.max_length


PREFIXES = st.sampled_from(
    ["fix: ", "feat(a): ", "[a] ", "a/b: ", "#1 ", "gh-1: ", "A-1: ", "🐛 ", ""]
)


@given(st.lists(st.tuples(PREFIXES, st.sampled_from(UPPER + LOWER)).map("".join), max_size=12))
def test_writing_a_subject_is_idempotent(subjects: list[str]) -> None:
    style = read_style(subjects)
    once = write_subject(style, FIX)
    assert write_subject(style, with_words(once)) == once


def test_this_repositorys_own_history_is_read() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        ["git", "log", "--no-merges", "--format=%s", "-n", "60"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    subjects = done.stdout.splitlines()
    style = read_style(subjects)
    assert style.kind == "plain"
    line = write_subject(style, with_words("keep the sign", "resolver/a.py"))
    assert line == ("Keep the sign" if style.first_letter == "upper" else "keep the sign")
