"""Tests of finding the issue template that a description was written with."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resolver.github.context.issue_form import MAX_TEMPLATE_BYTES, MAX_TEXT, find_form

FOLDER = ".github/ISSUE_TEMPLATE"
BUG = b"""\
name: Bug report
description: Something is wrong
title: "[Bug]: "
labels: [bug]
body:
  - type: markdown
    attributes:
      value: Thanks for taking the time!
  - type: textarea
    id: what
    attributes:
      label: What happened?
      description: Also tell us what you expected.
      value: "A bug happened!"
    validations:
      required: true
  - type: dropdown
    attributes:
      label: Version
      options: [1.0, no]
  - type: input
    attributes: {label: Contact, description: "How can we\\n  reach you?"}
"""
FEATURE = b"""\
---
name: Feature request
about: Suggest an idea
title: ''
---

**Is it about a problem?**
A clear and concise description.

## Version
<!-- Which one
do you use? -->

Alternatives
------------
"""
TEMPLATES = {f"{FOLDER}/bug.yml": BUG, f"{FOLDER}/feature.md": FEATURE}
WRITTEN = (
    "### What happened?\n\nIt adds wrong.\n\n### Version\n\nNone\n\n### Contact\n\n_No response_"
)


def path_of(templates: dict[str, bytes], title: str, body: str) -> str | None:
    form = find_form(templates, title, body)
    return form.path if form else None


def test_a_form_is_recognized_by_its_headings_and_returned_as_it_is() -> None:
    form = find_form(TEMPLATES, "Adds wrong", WRITTEN)
    assert form is not None
    assert (form.path, form.text) == (f"{FOLDER}/bug.yml", BUG.decode().strip())


def test_an_older_template_is_recognized_by_headings_of_each_kind() -> None:
    body = (
        "**Is it about a problem?**\nYes: mine.\n\n## Version\n\nAlternatives\n---\nNone that work"
    )
    form = find_form(TEMPLATES, "x", body)
    assert form is not None and form.path == f"{FOLDER}/feature.md"
    assert "<!-- Which one\ndo you use? -->" in form.text


def test_headings_of_the_writers_own_are_ignored() -> None:
    body = WRITTEN.replace("It adds wrong.", "#### Steps\n1. add")
    assert path_of(TEMPLATES, "x", body) == f"{FOLDER}/bug.yml"


def test_front_matter_is_not_a_heading() -> None:
    template = {"a.md": b"---\nname: Bug\nassignees: ''\n---\n# Steps\n"}
    assert path_of(template, "x", "# Steps\n1") == "a.md"


@pytest.mark.parametrize(
    "label",
    ["What happened, exactly?", '"What happened, exactly?"', "'What happened, exactly?'"],
)
def test_labels_are_compared_without_quotes(label: str) -> None:
    template = {"a.yml": f"body:\n- type: input\n  attributes:\n    label: {label}\n".encode()}
    assert path_of(template, "x", "### What happened, exactly?\nIt adds.") == "a.yml"


@pytest.mark.parametrize(
    "body",
    [
        "It adds wrong.",
        "## Version\n3",
        "```\n### What happened?\n### Version\n```\n",
        "> ### What happened?\n> ### Version\n",
        "We ask: What happened? Version Contact",
        "",
    ],
)
def test_one_heading_of_several_does_not_identify_a_form(body: str) -> None:
    assert find_form(TEMPLATES, "x", body) is None


def test_a_template_with_one_heading_needs_that_one() -> None:
    templates = {"ISSUE_TEMPLATE.md": b"# What is wrong\n"}
    form = find_form(templates, "x", "# what is wrong:\nall")
    assert form is not None and form.path == "ISSUE_TEMPLATE.md"


def test_the_best_form_is_chosen_and_the_title_decides_ties() -> None:
    same = {"b.yml": BUG, "a.yml": BUG.replace(b"Bug report", b"Other").replace(b"[Bug]", b"[No]")}
    found = find_form(same, "[bug]: adds wrong", WRITTEN)
    assert found is not None and found.path == "b.yml"
    wider = {"a.yml": BUG + b"  - type: input\n    attributes: {label: More}\n", "b.yml": BUG}
    found = find_form(wider, "x", WRITTEN)
    assert found is not None and found.path == "b.yml"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"name: x\nbody: [",
        b"- 1\n- 2\n",
        b"label:\nlabel: \nlabel: ''\n",
        b"label: What happened?\n" + b"#" * MAX_TEMPLATE_BYTES,
    ],
)
def test_an_invalid_form_is_ignored(content: bytes) -> None:
    assert find_form({f"{FOLDER}/a.yml": content}, "x", WRITTEN) is None


def test_a_long_form_is_shortened() -> None:
    form = find_form({"a.yml": BUG + b"# x\n" * 10_000}, "x", WRITTEN)
    assert form is not None and len(form.text) <= MAX_TEXT and form.text.endswith("…")


@pytest.mark.deep
@pytest.mark.parametrize(
    "piece", ["#", "**a", "`", "# a\n", "---\n", "<!--", "- [", "\u200b", "&a "]
)
def test_a_hostile_text_is_parsed_quickly(piece: str) -> None:
    text = (piece * 60_000)[:60_000]
    began = time.monotonic()
    find_form(
        {"a.md": text.encode()[:MAX_TEMPLATE_BYTES], "b.yml": text.encode()[:MAX_TEMPLATE_BYTES]},
        text,
        text,
    )
    assert time.monotonic() - began < 5


pieces = st.sampled_from(
    ["# ", "## A", "**A**", "\n", "---\n", "```", "body:", "- ", "  ", "type: input", "label: A",
     "attributes:", "&a", "*a", "{", "}", "[", "]", ":", "<!--", "-->", "\ufe0f", "\0", '"', "é"]
)  # fmt: skip


@given(st.lists(pieces).map("".join), st.lists(pieces).map("".join), st.sampled_from(["md", "yml"]))
def test_any_text_is_a_form_or_none(template: str, body: str, suffix: str) -> None:
    form = find_form({f"a.{suffix}": template.encode()}, "t", body)
    assert form is None or len(form.text) <= MAX_TEXT


HEADINGS = [" ", "\t", "#", "# ", " #", "x", "x" * 500, "*", "_", "**", "=", "-", "<!--", "-->"]


@pytest.mark.deep
@given(st.lists(st.sampled_from(HEADINGS), min_size=1, max_size=4).map("".join))
@example("# " + " " * 400 + "x" * 501)
@example("-")
@example("<!--- ")
def test_a_text_four_times_as_long_takes_about_four_times_as_long(piece: str) -> None:
    def cost(length: int) -> float:
        for_lines = ((piece + "\n") * length)[:length]
        texts = [(piece * length)[:length], for_lines]
        begun = time.process_time()
        for text in texts:
            find_form({"a.md": f"# Version\n{text}".encode()[:MAX_TEMPLATE_BYTES]}, "x", text)
        return time.process_time() - begun

    assert cost(65_000) < 10 * cost(16_250) + 0.3


def test_a_long_line_is_not_a_heading_and_does_not_hide_the_next() -> None:
    filler = "x" * 70_000
    body = f"# {filler}\n{filler}\n---\n{filler}\n# What happened? ##  \nThis\n# Version #\n1"
    assert path_of(TEMPLATES, "x", body) == f"{FOLDER}/bug.yml"


def test_without_templates_nothing_is_read() -> None:
    assert find_form({}, "x", WRITTEN) is None


@given(st.binary(max_size=300))
def test_any_bytes_are_a_form_or_none(content: bytes) -> None:
    find_form({"a.md": content, "a.yml": content}, "t", "# A\n## B\n")


@given(st.lists(st.from_regex(r"[A-Z][a-z]{2,9}\??", fullmatch=True), min_size=2, unique=True))
def test_a_text_that_github_makes_from_a_form_matches_it(labels: list[str]) -> None:
    fields = "".join(f"  - type: input\n    attributes:\n      label: '{n}'\n" for n in labels[:9])
    body = "\n\n".join(f"### {n}\n\n_No response_" for n in labels[:9])
    assert path_of({"a.yml": f"name: F\nbody:\n{fields}".encode()}, "t", body) == "a.yml"
