"""Tests of the parts that are taken out of an agent's final message."""

import pytest

from resolver.github.comments.pull_request_text import commit_message, pull_request_body
from resolver.github.comments.report import move_labelled_parts
from tests.github import reports

MESSAGE = """Make shares add up

**What was wrong.** Each share was truncated.

**What changed.** Whole cents are divided.

- the sign is kept

**How it was verified.** `pytest` passes.

**What is left.** Nothing.
"""


def test_labelled_paragraphs_become_the_parts_that_have_headings() -> None:
    outcome = move_labelled_parts(reports.outcome(MESSAGE))
    assert outcome.message == "Make shares add up"
    assert outcome.cause == "Each share was truncated."
    assert outcome.change == "Whole cents are divided.\n\n- the sign is kept"
    assert (outcome.verification, outcome.remaining) == ("`pytest` passes.", "Nothing.")
    body = pull_request_body(reports.report(outcome=outcome))
    assert body.count("What was wrong") == body.count("What changed") == 1 and "**What" not in body
    assert "Each share was truncated.\n\nWhole cents" in commit_message(
        reports.report(outcome=outcome)
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("## Root cause\nIt was.", "It was."),
        ("**Cause**: It was.", "It was."),
        ("__What was wrong__\n\nIt was.", "It was."),
        ("### **The problem:**\n\nIt was.\n\n## Notes\n\nMore.", "It was."),
    ],
)
def test_a_label_is_recognized_however_it_is_written(line: str, text: str) -> None:
    outcome = move_labelled_parts(reports.outcome(f"Mend it\n\n{line}"))
    assert outcome.cause == text and outcome.message.startswith("Mend it")
    assert ("## Notes\n\nMore." in outcome.message) is ("Notes" in line)


@pytest.mark.parametrize(
    "message",
    [
        "Mend it\n\n```\n## Cause\n**Fix:** x\n```",
        "Mend it\n\n**Cause and effect** differ.",
        "Mend it by\n**cause:** within a paragraph",
        "**Fix** the `parser`",
        "",
    ],
)
def test_other_text_stays_in_the_message(message: str) -> None:
    assert move_labelled_parts(reports.outcome(message)) == reports.outcome(message)


def test_a_part_that_is_also_a_field_is_said_once() -> None:
    outcome = move_labelled_parts(reports.outcome(MESSAGE, cause="The field."))
    assert outcome.cause == "The field." and "truncated" not in outcome.message
