"""Tests of filling in a repository's pull request template."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.comments.pull_request_template import (
    Fact,
    Part,
    fill_template,
    unfilled_template_text,
)
from resolver.github.text.comment_markdown import is_closed

PARTS = {
    Part.ISSUE: "Fixes #12",
    Part.WARNING: "> careful",
    Part.WHAT: "the summary",
    Part.WHY: "the cause",
    Part.CHANGE: "the change",
    Part.TESTED: "the tests",
    Part.LOOK: "the look",
    Part.RUN: "the run",
}
NAMES = {Part.WHY: "Why", Part.CHANGE: "How", Part.TESTED: "Tested", Part.LOOK: "Look"}
NOBODY = "*nobody*"


def fill(template: str, *facts: Fact, parts: dict[Part, str] | None = None) -> str | None:
    return fill_template(
        template,
        PARTS if parts is None else parts,
        frozenset(facts),
        own_issue=12,
        label=lambda part: NAMES.get(part, ""),
        empty_text=NOBODY,
    )


def sections(text: str) -> dict[str, str]:
    """What stands below each heading of the second level; "" is what stands above the first."""
    parts = re.split(r"^## (.*)$", text, flags=re.M)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


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

## Notes for reviewers
none

## Types of changes
- [ ] Bug fix
- [x] New feature

## Checklist
- [ ] I have added tests.
- [ ] I have added tests that prove that it works
- [ ] Docs updated
- [ ] All tests pass
"""


def test_each_heading_gets_what_it_asks_for() -> None:
    text = fill(FULL)
    assert text is not None
    found = sections(text)
    assert found[""].strip() == "> careful"
    assert found["Description"].split() == ["the", "summary", "**How**", "the", "change"]
    assert found["Motivation and Context"].strip() == "the cause"
    assert found["Related issue"].strip() == "Fixes #12"
    assert found["How Has This Been Tested?"].strip() == "the tests"
    assert found["Notes for reviewers"].strip() == "the look"
    assert found["Screenshots (if appropriate)"].strip() == NOBODY
    assert text.endswith("\n\nthe run")


def test_comments_of_a_template_are_not_part_of_the_pull_request() -> None:
    text = fill(FULL)
    assert text is not None
    assert "<!--" not in text and "CONTRIBUTING" not in text and "What does it do" not in text


def test_only_boxes_that_state_facts_are_ticked() -> None:
    text = fill(FULL)
    assert text is not None
    assert "[x]" not in text and text.count("- [ ] ") == 6


def test_a_box_that_states_more_than_a_fact_is_not_ticked() -> None:
    text = fill(FULL, Fact.TESTS, Fact.DOCS)
    assert text is not None
    ticked = re.findall(r"^- \[x\] (.*)$", text, re.M)
    assert ticked == ["I have added tests.", "Docs updated"]


@pytest.mark.parametrize(
    "label",
    [
        "All tests pass",
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
    text = unfilled_template_text(f"- [x] {label}", frozenset(Fact), own_issue=12)
    assert text == f"- [ ] {label}"


@pytest.mark.parametrize(
    ("label", "fact"),
    [
        ("I have added tests", Fact.TESTS),
        ("Added or updated unit tests", Fact.TESTS),
        ("Tests added", Fact.TESTS),
        ("Tests have been added", Fact.TESTS),
        ("I've updated the documentation", Fact.DOCS),
        ("Docs updated", Fact.DOCS),
        ("Updated the changelog", Fact.CHANGELOG),
        ("`CHANGELOG` updated", Fact.CHANGELOG),
        ("Linked to an existing issue", Fact.ISSUE),
    ],
)
def test_a_true_fact_is_ticked(label: str, fact: Fact) -> None:
    assert (
        unfilled_template_text(f"* [ ] {label}", frozenset({fact}), own_issue=12)
        == f"* [x] {label}"
    )
    others = frozenset(Fact) - {fact}
    assert unfilled_template_text(f"* [ ] {label}", others, own_issue=12) == f"* [ ] {label}"


def test_parts_without_a_heading_go_below_the_description() -> None:
    text = fill("# Summary\n\nwhat\n")
    assert text is not None
    order = ["> careful", "# Summary", "the summary", "**Why**", "the cause", "**How**"]
    order += ["the change", "**Tested**", "the tests", "**Look**", "the look", "the run"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert text.startswith("> careful\n\nFixes #12")


def test_parts_that_no_heading_asks_for_come_first() -> None:
    text = fill("## Testing\n\nhow\n\n## Checklist\n\n- [ ] a\n")
    assert text is not None
    assert text.index("### Why\n\nthe cause") < text.index("## Testing") < text.index("the tests")


@pytest.mark.parametrize(
    "template",
    ["- [ ] I have read the rules\n", "Thanks!\n", "<!-- only a comment -->", "## Foo\n\nbar\n"],
)
def test_a_template_without_known_headings_is_not_filled_in(template: str) -> None:
    assert fill(template) is None


def test_checkboxes_of_such_a_template_are_kept() -> None:
    kept = unfilled_template_text(
        "<!-- a -->\n## Foo\n\nbar <!-- b -->\n- [x] c\n  d\n\n## Empty\n\nAll is well.\n",
        frozenset(),
        own_issue=1,
    )
    assert kept == "## Foo\n\n- [ ] c\n  d"


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


def test_headings_that_name_several_things_get_what_they_ask_for() -> None:
    text = fill(SYMPY, parts={**PARTS, Part.CHANGELOG: "no entry"})
    assert text is not None
    found = dict(re.findall(r"^#### (.*)\n+([^#]*(?:#12)?[^#]*)", text, re.M))
    assert found["References to other Issues or PRs"].split() == ["Fixes", "#12"]
    description = found["Brief description of what is fixed or changed"]
    for result in ("the summary", "the cause", "the change", "the tests"):
        assert result in description
    assert found["Other comments"].strip() == "the look"
    assert found["Release Notes"].split("\n")[0] == "no entry"
    assert NOBODY not in text and text.index("#### Release") < text.index("the run")


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


def test_claims_of_a_template_are_removed() -> None:
    text = fill(PYLINT)
    assert text is not None
    for claim in ("✓", "check_mark", "[x]", "XXXX", "backwards compatible"):
        assert claim not in text
    assert "|     | :bug: Bug fix          |\n" in text.replace("|   |", "|     |")
    assert text.count(":scroll: Docs") == 1
    assert "- [ ] Create a news" in text and "  included in the changelog." in text
    found = sections(text)
    assert "the summary" in found["Description"] and "the tests" in found["Description"]
    assert found["Compatibility"].split()[0] == NOBODY


@pytest.mark.parametrize(
    "claims",
    [
        "None.",
        "By opening this I confirm that I have read the rules.",
        "- ✅ Bug fix\n- ✅ Docs",
        "| Q | A |\n| --- | --- |\n| Bug fix? | yes |\n| License | MIT |",
        "```\nNo risk.\n```",
    ],
)
def test_text_that_is_not_about_this_change_is_removed(claims: str) -> None:
    text = fill(f"{claims}\n\n## What\n\nx\n\n## Compatibility\n\n{claims}\n\nSee:\n- [X] a\n")
    assert text is not None
    assert claims.split("\n")[-1] not in text
    assert "## Compatibility\n\nSee:\n- [ ] a" in text
    assert unfilled_template_text(claims, frozenset(Fact), own_issue=None) == ""


@pytest.mark.parametrize(
    ("heading", "part"),
    [
        ("Description of the issue", Part.WHY),
        ("Describe the problem", Part.WHY),
        ("Issue number", Part.ISSUE),
        ("Fixed issues", Part.ISSUE),
        ("Summary of changes", Part.WHAT),
        ("How was this tested?", Part.TESTED),
        ("Changelog", Part.CHANGELOG),
    ],
)
def test_a_heading_asks_for_one_thing(heading: str, part: Part) -> None:
    text = fill(f"## What\n\n## {heading}\n", parts={Part.WHAT: "a", part: "the answer"})
    if part is Part.WHAT:
        text = fill(f"## {heading}\n", parts={part: "the answer"})
    assert text is not None and f"## {heading}\n\nthe answer" in text


@pytest.mark.parametrize(
    "heading",
    ["## What", "What\n----", "### What #", "**What:**", "__What__", "<h2>What</h2>", "# What?"],
)
def test_headings_of_every_form_are_recognized(heading: str) -> None:
    text = fill(f"{heading}\n\nsay it here\n", parts={Part.WHAT: "the summary"})
    assert text == f"{heading}\n\nthe summary"


def test_a_heading_in_code_is_ignored() -> None:
    text = fill("## What\n\n```\n## Why\n```\n\n## Other\n\n```\n## Why\n```\n")
    assert text is not None
    assert "**Why**\n\nthe cause" in text and "## Why" not in text


def test_a_heading_above_headings_needs_nothing_below_it() -> None:
    text = fill("# Pull request\n\n## What\n\nx\n\n# Rest\n")
    assert text is not None
    assert "# Pull request\n\n## What" in text
    assert text.count(NOBODY) == 1 and f"# Rest\n\n{NOBODY}" in text


def test_a_template_refers_to_no_other_issue_and_notifies_nobody() -> None:
    text = fill(
        "cc @octo/team, e.g. Fixes #7, closes octo/demo#8, https://github.com/o/r/issues/9\n\n"
        "## What\n\nx\n\n## Links\n\nsee [the rules](https://example.com/rules#3) and #12\n"
    )
    assert text is not None
    assert "@octo" not in text and "#7" not in text and "#8" not in text and "/issues/9" not in text
    assert "https://github.com" not in text
    assert "#12" in text


def test_an_unclosed_block_in_a_template_hides_nothing() -> None:
    text = fill("## What\n\nx\n\n## Other\n\n<details>\n\n```\nnever closed")
    assert text is not None and is_closed(text)


WORDS = st.sampled_from(
    [
        *("## ", "# ", "What", "Why", "Tests", "Checklist", "\n", "\n\n", "- [ ] ", "- [x] "),
        *("```\n", "<!-- ", " -->", "<details>", "</details>", "**", "Fixes #", "12", "7", "@a"),
        *("> ", "---\n"),
    ]
)


@given(st.lists(WORDS, max_size=40).map("".join))
def test_any_template_keeps_everything_that_is_known(template: str) -> None:
    text = fill(template)
    if text is None:
        return
    assert all(part in text for part in PARTS.values())
    assert not re.search(r"^\s*- \[x\] ", text, re.M)
    assert "<!--" not in text and not re.search(r"(?<!\w)@a", text)
    assert not re.search(r"#(?!12\b)\d", text)


@given(st.text(max_size=300))
def test_any_text_is_a_template(template: str) -> None:
    text = fill(template)
    assert text is None or "the tests" in text
    unfilled_template_text(template, frozenset(Fact), own_issue=None)
