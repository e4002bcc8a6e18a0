"""Tests of completing a repository's pull request template with the agent's text for it."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resolver.github.comments.pull_request_template import (
    CheckboxStatement,
    complete_template,
    describe_below_heading,
    template_form,
)
from resolver.github.text.comment_markdown import is_closed


def fill(
    template: str, answer: str, *facts: CheckboxStatement, own_issue: int | None = 12
) -> str | None:
    return complete_template(template, answer, frozenset(facts), own_issue=own_issue, limit=4_000)


def filled(template: str, answer: str, *facts: CheckboxStatement) -> str:
    text = fill(template, answer, *facts)
    assert text is not None
    return text


FULL = """<!-- Thank you! Read CONTRIBUTING first. -->
## Description
<!-- What does it do? -->
Describe your changes.

## Motivation and Context
Why is this needed?

## Related issue
Fixes #

## How Has This Been Tested?
Please describe.

## Screenshots (if appropriate)

## Types of changes
- [ ] Bug fix
- [x] New feature

## Checklist
- [ ] I have added tests.
- [ ] I have added tests that prove that it works
- [ ] Docs updated
- [ ] All tests pass
"""
ANSWER = """## Description
<!-- What does it do? -->
`add` adds now.

## Motivation and Context
It subtracted.

## Related issue
Fixes #12

## How Has This Been Tested?
Please describe.

## Screenshots (if appropriate)

## Types of changes
- [x] Bug fix
- [ ] New feature

## Checklist
- [x] I have added tests.
- [x] All tests pass
"""
FORM = """## Types of changes

- [ ] Bug fix
- [ ] New feature

## Checklist

- [ ] I have added tests.
- [ ] I have added tests that prove that it works
- [ ] Docs updated
- [ ] All tests pass"""


def test_headings_keep_their_order_and_sections_without_an_answer_are_removed() -> None:
    assert filled(FULL, ANSWER) == (
        "## Description\n\n`add` adds now.\n\n"
        "## Motivation and Context\n\nIt subtracted.\n\n"
        f"## Related issue\n\nFixes #12\n\n{FORM}"
    )


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "It adds now.",
        "## Summary\n\nIt adds now.",
        "## Motivation and Context\nIt subtracted.\n\n## Description\nIt adds.",
        "## Description\nIt adds.\n\n## Description\nIt adds.",
        FULL,
        "## Description\n\nTODO\n\n## Related issue\n\nFixes #XXXX\n".replace("#XXXX", "#"),
    ],
    ids=["none", "no heading", "other headings", "other order", "twice", "unanswered", "todo"],
)
def test_a_text_that_does_not_follow_the_template_is_not_used(answer: str) -> None:
    assert fill(FULL, answer) is None


def test_only_boxes_that_state_facts_are_ticked_whatever_the_agent_ticked() -> None:
    text = filled(FULL, ANSWER, CheckboxStatement.TESTS, CheckboxStatement.DOCS)
    ticked = re.findall(r"^- \[x\] (.*)$", text, re.M)
    assert ticked == ["I have added tests.", "Docs updated"]
    assert "- [x] All tests pass" in filled(FULL, ANSWER, CheckboxStatement.PASSING)


@pytest.mark.parametrize(
    ("template", "heading"),
    [
        (FULL, "## Description"),
        ("**Summary:**\n", "**Summary:**"),
        ("### Proposed change\n", "### Proposed change"),
        ("## What kind of change?\n- [ ] Bug fix\n\n## What else?\n", "## What else?"),
    ],
)
def test_a_description_is_put_below_the_heading_that_asks_for_one(
    template: str, heading: str
) -> None:
    assert describe_below_heading(template, "It adds.") == f"{heading}\n\nIt adds."


@pytest.mark.parametrize("template", ["", "Describe it.", "## Testen\n", "## Type of change\n"])
def test_without_such_a_heading_there_is_no_place_for_a_description(template: str) -> None:
    assert describe_below_heading(template, "It adds.") == ""


def test_a_checklist_that_was_left_out_is_kept() -> None:
    text = filled(FULL, "## Description\nIt adds.")
    assert text == f"## Description\n\nIt adds.\n\n{FORM}"


@pytest.mark.parametrize(
    "label",
    [
        "I have run the tests",
        "I added tests and they pass",
        "I have added tests that prove my fix is effective or that my feature works",
        "New and existing unit tests pass locally with my changes",
        "I have not added tests",
        "Tests are not needed",
        "I have read the CLA",
        "I have added no tests",
        "Documentation is not updated",
        "I have reviewed my code",
    ],
)
def test_a_claim_is_never_ticked(label: str) -> None:
    text = template_form(f"- [x] {label}", frozenset(CheckboxStatement), own_issue=12)
    assert text == f"- [ ] {label}"


@pytest.mark.parametrize(
    ("label", "fact"),
    [
        ("I have added tests", CheckboxStatement.TESTS),
        ("Added or updated unit tests", CheckboxStatement.TESTS),
        ("Tests added", CheckboxStatement.TESTS),
        ("Tests have been added", CheckboxStatement.TESTS),
        ("All tests pass", CheckboxStatement.PASSING),
        ("All new and existing tests passed.", CheckboxStatement.PASSING),
        ("I've updated the documentation", CheckboxStatement.DOCS),
        ("Docs updated", CheckboxStatement.DOCS),
        ("Updated the changelog", CheckboxStatement.CHANGELOG),
        ("`CHANGELOG` updated", CheckboxStatement.CHANGELOG),
        ("Linked to an existing issue", CheckboxStatement.ISSUE),
    ],
)
def test_a_true_fact_is_ticked(label: str, fact: CheckboxStatement) -> None:
    assert template_form(f"* [ ] {label}", frozenset({fact}), own_issue=12) == f"* [x] {label}"
    other_facts = frozenset(CheckboxStatement) - {fact}
    assert template_form(f"* [ ] {label}", other_facts, own_issue=12) == f"* [ ] {label}"


def test_the_form_of_a_template_is_its_checkboxes_with_their_headings() -> None:
    form = template_form(
        "<!-- a -->\n## Foo\n\nbar <!-- b -->\n- [x] c\n  d\n\n## Empty\n\nAll is well.\n",
        frozenset(),
        own_issue=1,
    )
    assert form == "## Foo\n\n- [ ] c\n  d"


SYMPY = """<!-- Your title above should be a short description of what
was changed. Do not include the issue number in the title. -->

#### References to other Issues or PRs
<!-- If this pull request fixes an issue, write "Fixes #NNNN" in that exact
format, e.g. "Fixes #1234". -->


#### Brief description of what is fixed or changed


#### Other comments


#### Release Notes

<!-- Write the release notes for this release below between the BEGIN and END
statements, or if no release note(s) should be included use: NO ENTRY -->

<!-- BEGIN RELEASE NOTES -->

<!-- END RELEASE NOTES -->
"""


def test_empty_headings_of_a_template_do_not_trail_the_text() -> None:
    answer = SYMPY.replace(
        "fixed or changed\n", "fixed or changed\n\n`Add` keeps the order of its terms.\n"
    ).replace("-->\n\n\n####", "-->\nFixes #12\n\n####", 1)
    assert filled(SYMPY, answer) == (
        "#### References to other Issues or PRs\n\nFixes #12\n\n"
        "#### Brief description of what is fixed or changed\n\n"
        "`Add` keeps the order of its terms."
    )


PYLINT = """<!-- Thank you for submitting a PR to pylint! -->

- [ ] Write a good description on what the PR does.
- [x] Create a news fragment with `towncrier create <IssueNumber>.<type>` which will be
  included in the changelog.

## Type of Changes

<!-- Leave the corresponding lines for the applicable type of change: -->

|     | Type                   |
| --- | ---------------------- |
| ✓   | :bug: Bug fix          |
| :heavy_check_mark: | :sparkles: New feature |
| [x] | :hammer: Refactoring   |
|     | :scroll: Docs          |

## Description

<!-- If this PR references an issue without fixing it: -->

Refs #XXXX

Closes #XXXX

## Compatibility

This change is backwards compatible.
"""


def test_ticks_and_claims_of_a_template_are_removed() -> None:
    one_type = re.sub(r"^\|.*(?:feature|Refactoring|Docs) .*\n", "", PYLINT, flags=re.M)
    answer = one_type.replace("Closes #XXXX", "It no longer crashes.\n\nCloses #12")
    text = filled(PYLINT, answer)
    for claim in ("✓", "check_mark", "[x]", "XXXX", "backwards compatible", "Compatibility"):
        assert claim not in text
    assert text.count(":bug: Bug fix") == text.count(":scroll: Docs") == 1
    assert "- [ ] Create a news" in text and "  included in the changelog." in text
    assert text.endswith("## Description\n\nIt no longer crashes.\n\nCloses #12")


@pytest.mark.parametrize(
    "claims",
    [
        "None.",
        "By opening this I confirm that I have read the rules.",
        "- ✅ Bug fix\n- ✅ Docs",
        "| Q | A |\n| --- | --- |\n| Bug fix? | yes |\n| License | MIT |",
        "```\nNo risk.\n```",
        "TBD",
        "...",
    ],
)
def test_text_that_is_not_about_this_change_is_removed(claims: str) -> None:
    template = f"{claims}\n\n## What\n\nx\n\n## Compatibility\n\n{claims}\n\nSee:\n- [X] a\n"
    text = filled(template, template.replace("\nx\n", "\nIt adds.\n"))
    assert text == "## What\n\nIt adds.\n\n## Compatibility\n\nSee:\n- [ ] a"
    assert template_form(claims, frozenset(CheckboxStatement), own_issue=None) == ""


@pytest.mark.parametrize("end", [" |", ""])
def test_a_table_of_questions_keeps_its_answers(end: str) -> None:
    rows = ["| Q | A", "| --- | ---", "| Bug fix? | yes/no", "| License | MIT", ""]
    template = "## What\n\n" + f"{end}\n".join(rows)
    text = filled(template, template.replace("fix? | yes/no", "fix? | yes"))
    assert text == "## What\n\n| Q | A |\n| --- | --- |\n| Bug fix? | yes |"


@pytest.mark.parametrize(
    "heading",
    ["## What", "What\n----", "### What #", "**What:**", "__What__", "<h2>What</h2>", "# What?"],
)
def test_headings_of_every_form_are_recognized(heading: str) -> None:
    text = filled(f"{heading}\n\nsay it here\n", f"{heading}\n\nIt adds.")
    assert text == f"{heading}\n\nIt adds."


def test_a_template_without_headings_takes_the_whole_text() -> None:
    template = "<!-- What and why? -->\nDescribe it.\n\n- [ ] I have read the rules\n"
    answer = "It adds.\n\n## Why\n\nIt subtracted.\n\n- [x] I have read the rules"
    assert filled(template, answer) == (
        "It adds.\n\n#### Why\n\nIt subtracted.\n\n- [ ] I have read the rules"
    )


def test_a_heading_of_the_agents_own_belongs_to_the_section_above() -> None:
    text = filled("## What\n\n## Why\n", "## What\n\na\n\n### Details\n\nb\n\n## Why\n\nc")
    assert text == "## What\n\na\n\n#### Details\n\nb\n\n## Why\n\nc"


def test_a_heading_in_code_is_ignored() -> None:
    text = filled("## What\n\n## Why\n", "## What\n\n```\n## Why\n- [x] a\n```\n\n## Why\n\nc")
    assert text == "## What\n\n```\n## Why\n- [x] a\n```\n\n## Why\n\nc"


def test_a_heading_above_headings_needs_nothing_below_it() -> None:
    template = "# Pull request\n\n## What\n\nx\n\n# Rest\n\n## More\n"
    assert filled(template, "## What\n\nIt adds.") == "# Pull request\n\n## What\n\nIt adds."


def test_repeated_headings_are_distinguished_by_their_order() -> None:
    template = "# Server\n\n## Tests\n\n# Client\n\n## Tests\n"
    answer = "# Server\n\n## Tests\n\na\n\n# Client\n\n## Tests\n\nb"
    assert filled(template, answer) == answer


def test_neither_template_nor_text_refers_to_another_issue_or_notifies_anybody() -> None:
    template = (
        "## What @octo/team\n\ncc @octo/team\n\n## Links\n\n- [ ] like #7, octo/demo#8, "
        "https://github.com/o/r/issues/9\n"
    )
    text = filled(template, f"{template}\nFixes #7, closes octo/demo#8 @mona, see #12.")
    outside_code = re.sub(r"`[^`]*`", "", text)
    for reference in ("@octo", "@mona", "#7", "#8", "https://github.com"):
        assert reference not in outside_code
    assert "see #12" in text


def test_without_an_own_issue_the_text_closes_none() -> None:
    text = fill("## What\n", "## What\n\nFixes #12", own_issue=None)
    assert text == "## What\n\nFixes `#12`"


def test_markup_of_the_text_hides_nothing() -> None:
    text = filled("## What\n\n## Other\n", "## What\n\n<details>\n\na\n\n## Other\n\n```\nopen")
    assert is_closed(text) and "## Other\n\n```\nopen\n```" in text


WORDS = st.sampled_from(
    [
        *("## ", "# ", "What", "Why", "Tests", "Checklist", "\n", "\n\n", "- [ ] ", "- [x] "),
        *("```\n", "<!-- ", " -->", "<details>", "</details>", "**", "Fixes #", "12", "7", "@a"),
        *("> ", "---\n", "| ", " |", "| a | b |\n| - | - |\n", "✓", "TODO"),
    ]
)
TEXTS = st.lists(WORDS, max_size=40).map("".join)


@given(TEXTS, TEXTS)
@example("```\n- [ ] <!-- ", "What")
def test_any_text_for_any_template_ticks_nothing_and_notifies_nobody(
    template: str, answer: str
) -> None:
    text = fill(template, answer)
    if text is None:
        return
    assert text.strip()
    outside_code = re.sub(r"^( *(?:> |- )*)(`{3,}).*?^\1?\2$", "", text, flags=re.M | re.S)
    assert not re.search(r"^\s*- \[x\] ", outside_code, re.M)
    assert "<!--" not in re.sub(r"`[^`]*`|```.*?```", "", outside_code, flags=re.S)
    assert not re.search(r"(?<![\w`])@a", outside_code)
    assert not re.search(r"(?<!`)#(?!12\b)\d+\b", outside_code)


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_a_template(template: str, answer: str) -> None:
    fill(template, answer)
    fill(template, template)
    template_form(template, frozenset(CheckboxStatement), own_issue=None)
