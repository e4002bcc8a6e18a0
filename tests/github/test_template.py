"""Tests of the agent's text for a repository's pull request template."""

import re

import pytest

from resolver.github.comments.pull_request_template import fill_template


def fill(template: str, answer: str, own_issue: int | None = 12) -> str | None:
    return fill_template(template, answer, own_issue=own_issue, limit=4_000)


def filled(template: str, answer: str) -> str:
    text = fill(template, answer)
    assert text is not None
    return text


FULL = """<!-- Thank you! Read CONTRIBUTING first. -->
## Description
<!-- What does it do? -->

## Related issue
Fixes #

### How Has This Been Tested?

## Checklist
- [ ] I have added tests
- [ ] I have added tests that prove that it works
- [x] No breaking changes
"""
ANSWER = """## Description
<!-- What does it do? -->
`add` adds now.

## Related issue
Fixes #12

### How Has This Been Tested?
`pytest tests`

## Checklist
- [x] I have added tests: test_add in tests/test_calc.py
- [x] I have added tests that prove that it works
- [x] No breaking changes
"""


def test_headings_keep_their_levels_and_instructions_are_removed() -> None:
    assert filled(FULL, ANSWER) == (
        "## Description\n\n`add` adds now.\n\n"
        "## Related issue\n\nFixes #12\n\n"
        "### How Has This Been Tested?\n\n`pytest tests`\n\n"
        "## Checklist\n\n"
        "- [x] I have added tests: test_add in tests/test_calc.py\n"
        "- [ ] I have added tests that prove that it works\n"
        "- [ ] No breaking changes"
    )


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "It adds now.",
        "## Summary\n\nIt adds now.",
        ANSWER.replace("## Checklist", "Checklist"),
        "## Checklist\n\n" + ANSWER.replace("## Checklist", ""),
        FULL,
    ],
    ids=["none", "no heading", "other headings", "one is missing", "other order", "unanswered"],
)
def test_a_text_that_does_not_follow_the_template_is_not_used(answer: str) -> None:
    assert fill(FULL, answer) is None


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("1. [x] a, see b.py", "1. [x] a, see b.py"),
        ("- [x] a", "- [ ] a"),
        ("- [x] other: see b.py", "- [ ] other: see b.py"),
        ("- b\n  - [x] a", "- b\n  - [ ] a"),
    ],
)
def test_a_tick_needs_a_box_of_the_template_and_a_reason(line: str, shown: str) -> None:
    assert filled("## What\n\n- [ ] a\n", f"## What\n\n{line}") == f"## What\n\n{shown}"


@pytest.mark.attack
def test_the_text_refers_to_no_other_issue_and_notifies_nobody() -> None:
    """The agent's text for a pull request template mentions people and other issues: nothing of it
    is live."""
    template = "## What @octo/team\n\n- [ ] like #7, https://github.com/o/r/issues/9\n"
    text = filled(template, f"{template}\nFixes #7, closes octo/demo#8 @mona, see #12.")
    outside_code = re.sub(r"`[^`]*`", "", text)
    for reference in ("@octo", "@mona", "#7", "#8", "https://github.com"):
        assert reference not in outside_code
    assert "see #12" in text
