"""Tests of finding references to issues, as GitHub links them."""

import pytest
from hypothesis import given

from resolver.github.text.links import IssueReference, references_in
from resolver.github.text.located import code_regions
from tests.github.markup import soup

HOST = "github.com"


def found(text: str) -> list[IssueReference]:
    return list(references_in(text, HOST))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("see #12.", (None, 12)),
        ("(#7)", (None, 7)),
        ("GH-3 and more", (None, 3)),
        ("octo/demo#5", ("octo/demo", 5)),
        ("https://github.com/octo/demo/issues/8#issuecomment-1", ("octo/demo", 8)),
        ("https://GITHUB.com/octo/demo/pull/9/files", ("octo/demo", 9)),
        ("[words](https://github.com/octo/demo/pull/9)", ("octo/demo", 9)),
    ],
)
def test_references_that_github_links_are_found(text: str, named: tuple[str | None, int]) -> None:
    assert found(text) == [IssueReference(*named)]


@pytest.mark.parametrize(
    "text",
    [
        "`#12`",
        "```\n#12\n```",
        "    #12",
        "x#12",
        "#12a",
        "#0",
        "#",
        "&#12;",
        "a/b/c#1",
        "https://evil.example/octo/demo/issues/8",
        "https://github.com.evil.example/octo/demo/issues/8",
        "https://github.com/octo/demo/issues/8x",
        "color: #123456789012",
    ],
)
def test_references_that_github_does_not_link_are_ignored(text: str) -> None:
    assert found(text) == []


def test_references_come_in_the_order_of_the_text() -> None:
    assert [n.number for n in found("#3 then `#9` and #1, o/n#2 and #3")] == [3, 1, 2, 3]


@given(soup("#1", "#22", "o/n#3", "gh-4", "https://github.com/o/n/pull/5", max_size=30))
def test_no_reference_is_found_in_code(text: str) -> None:
    named = found(text)
    outside = "".join(
        " " if any(a <= i < b for a, b in code_regions(text)) else c for i, c in enumerate(text)
    )
    assert all(n.number > 0 and str(n.number) in outside for n in named)
