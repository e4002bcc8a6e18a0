"""Tests of finding references to issues, as GitHub links them."""

import pytest

from resolver.github.text.links import IssueReference, references_in

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
