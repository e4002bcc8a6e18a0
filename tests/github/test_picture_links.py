"""Tests of replacing pictures in texts, with their alternative texts."""

import pytest

from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.links import (
    MAX_NUMBERED_PICTURES,
    IssueReference,
    PictureLinks,
    references_in,
)


def taken(text: str) -> tuple[str, list[tuple[str, str]]]:
    links = PictureLinks()
    result = links.take(strip_hidden(text).text, "in the description", "/issues/1", "mallory")
    return result, [(link.url, link.alt) for link in links.links]


@pytest.mark.parametrize(
    ("text", "expected", "url", "alt"),
    [
        ("see ![shot](http://h/a.png) here", "see [picture 1] here", "http://h/a.png", "shot"),
        ("> ![a\n> b](u)", "> [picture 1]\n> ", "u", "a b"),
        ("![ref][r]\n\n[r]: http://h/b", "[picture 1]\n\n[r]: http://h/b", "http://h/b", "ref"),
        ("| a |\n|-|\n| ![x\\|y](u) |", "| a |\n|-|\n| [picture 1] |", "u", "x|y"),
        ("![a ![b](c) d](e)", "[picture 1]", "e", "a ![b](c) d"),
        ('<img width="9" alt="EVIL" src="http://h/c" />', "[picture 1]", "http://h/c", ""),
        ("![x](data:image/png;base64,AAAA)", "[picture 1]", "data:image/png;base64,AAAA", "x"),
    ],
)
def test_a_picture_is_replaced_by_its_number(text: str, expected: str, url: str, alt: str) -> None:
    assert taken(text) == (expected, [(url, alt)])


@pytest.mark.parametrize(
    "text",
    ["`![a](u)`", "```\n![a](u)\n<img src=u>\n```", "    ![a](u)", "\\![a](u)", "![a]", "![a] (u)"],
)
def test_text_without_pictures_is_unchanged(text: str) -> None:
    assert taken(text) == (text, [])


def test_the_same_picture_has_one_number_in_all_texts() -> None:
    links = PictureLinks()
    first = links.take("![a](u) ![b](v)", "here", "/1", "x")
    second = links.take("![c](v) ![d](w)", "there", "/2", "y")
    assert (first, second) == ("[picture 1] [picture 2]", "[picture 2] [picture 3]")
    assert [(link.number, link.text_name) for link in links.links][-1] == (3, "there")


def test_pictures_beyond_the_maximum_are_counted() -> None:
    links = PictureLinks()
    result = links.take(
        " ".join(f"![a](u{n})" for n in range(MAX_NUMBERED_PICTURES + 5)), "here", "/1", "x"
    )
    assert len(links.links) == MAX_NUMBERED_PICTURES
    assert links.unnumbered == 5
    assert result.endswith("[picture]")


HOST = "github.com"


def found(text: str) -> list[IssueReference]:
    return list(references_in(text, HOST))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("see #12.", (None, 12)),
        ("GH-3 and more", (None, 3)),
        ("octo/demo#5", ("octo/demo", 5)),
        ("https://github.com/octo/demo/issues/8#issuecomment-1", ("octo/demo", 8)),
        ("[words](https://github.com/octo/demo/pull/9)", ("octo/demo", 9)),
    ],
)
def test_references_that_github_links_are_found(text: str, named: tuple[str | None, int]) -> None:
    assert found(text) == [IssueReference(*named)]


@pytest.mark.parametrize(
    "text",
    [
        "`#12`",
        "    #12",
        "x#12",
        "&#12;",
        "https://evil.example/octo/demo/issues/8",
        "https://github.com.evil.example/octo/demo/issues/8",
    ],
)
def test_references_that_github_does_not_link_are_ignored(text: str) -> None:
    assert found(text) == []
