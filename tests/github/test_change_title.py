"""Tests of which lines can be titles: those that say what changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.comments.titles import is_about_process, is_descriptive_title


@pytest.mark.parametrize(
    "line",
    [
        "Add alpha()",
        "Handle empty input in the parser",
        "Fixed the parser",
        "Makes the cache thread-safe",
        "Let users pass a timeout",
        "Return NotImplemented from __eq__",
        "fix(parser): tabs at the line's end",
        "api: drop the old endpoint",
        "[docs] Name the new option",
        "No longer crash on empty input",
        "Don't strip trailing blanks",
        "Correctly decode bytes in Header.fromstring",
        "Wrote a guide to migrations",
        "Test the lock before it is taken",
        "Show the diff of a dry run",
        "Find modules below a namespace package",
        "Apply the default timeout to uploads",
        "Print the status code of a failed request",
    ],
)
def test_a_verb_of_change_and_what_it_changes_is_a_title(line: str) -> None:
    assert is_descriptive_title(line, ["The lock is taken twice"])


@pytest.mark.parametrize(
    "line",
    [
        "All tests passed",
        "I'm ready to submit",
        "I am ready to submit",
        "Done",
        "Done with all of it",
        "Let me verify",
        "Let me verify the fix",
        "Now I'll run the tests",
        "Everything looks clean",
        "The diff looks correct",
        "It works as expected",
        "Task completed successfully",
        "The issue has been resolved",
        "Ready for review",
        "No changes needed",
        "Verified the fix with a script",
        "Verify the fix works",
        "Run pytest on tests/a.py",
        "Running the whole suite again",
        "Correct. The header is kept",
        "We have fixed the parser",
        "Fix the issue",
        "Fixed it",
        "Make it work",
        "Implemented the requested changes",
        "Set does not override __eq__",
        "Summary of changes",
        "Create reproduce.py",
        "Delete test_repro.py",
        "Create a reproduction script",
        "Write a script to reproduce the bug",
        "Add print statements to debug",
        "Find the root cause",
        "Find where the lock is taken",
        "Copy the parser to /tmp",
        "Revert the temporary debug changes",
        "Install the dependencies",
        "Set up the environment",
        "Use sed to replace the line",
        "Open the file django/db/models.py",
        "Make the change in separable.py",
        "Show the diff",
        "Print the output of the command",
        "",
        "...",
    ],
)
def test_a_line_about_the_work_is_not_a_title(line: str) -> None:
    assert not is_descriptive_title(line, ["The lock is taken twice"])


@given(st.text())
def test_any_line_gets_an_answer(line: str) -> None:
    is_descriptive_title(line, [line])
    is_about_process(line)
