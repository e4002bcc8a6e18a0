"""Tests of markdown traces: closed, inert and within the limit of a comment."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.models.run import PlanItem
from resolver.trace.markdown import CommentTrace, render_markdown
from resolver.trace.plain import clean
from resolver.trace.untrusted_text import (
    fenced,
    inline_code,
    plain_prose,
    quote_markdown,
    utf16_length,
)
from tests.trace.events import any_events, text
from tests.trace.sample import HOSTILE, hostile, numbered

GITHUB = 65_536
OURS = {
    "details", "summary", "p", "em", "strong", "code", "pre", "blockquote", "br", "h1", "h2", "h3",
    "ul", "li",
}  # fmt: skip
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


VOID = {"meta", "img", "br", "hr", "input"}


class ParsedPage(HTMLParser):
    """Reads a rendered page, whose tags have to close: its tags, the words outside code."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.code: list[str] = []
        self.comments = 0
        self.feed(html)
        self.close()
        assert self.open == []

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.seen]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "code":
            self.code.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.comments += 1

    def handle_data(self, data: str) -> None:
        if "code" in self.open:
            self.code[-1] += data
        else:
            self.words += data


def read(markdown: str) -> ParsedPage:
    """Return the rendered page, checked for what applies to every trace."""
    page = ParsedPage(MARKDOWN.render(markdown))
    assert set(page.tags) <= OURS
    assert page.comments == 0
    assert all(attributes.keys() <= {"class"} for _, attributes in page.seen)
    assert not re.search(r"@\w|#\d|GH-\d|://|www\.", page.words, re.IGNORECASE), page.words
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", markdown)
    return page


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_text_anywhere_breaks_nothing(words: str) -> None:
    read(render_markdown(hostile(words)))
    for limit in (GITHUB, 4_000, 1_500):
        comment = CommentTrace(hostile(words)).render(limit)
        assert utf16_length(comment) <= limit
        assert read(comment).tags


@given(any_events())
def test_any_log_renders_closed_and_inert(events: list) -> None:
    read(render_markdown(events))


@given(any_events(max_size=30), st.integers(0, 6_000))
def test_any_comment_is_within_its_limit_closed_and_inert(events: list, limit: int) -> None:
    comment = CommentTrace(events).render(limit)
    assert utf16_length(comment) <= limit
    read(comment)


@given(text | st.text(alphabet="`~ \n\ta<", max_size=80))
def test_a_fence_contains_its_text_unchanged(text: str) -> None:
    words = clean(text)
    page = read(f"before\n\n{fenced(words)}\n\nafter")
    assert len(page.code) == 1
    assert page.code[0] in (f"{words}\n", words)
    assert "after" in page.words


@pytest.mark.parametrize("count", [3, 50, 254, 255, 256, 70_000])
@pytest.mark.parametrize("marks", ["`", "~", "`~"])
def test_runs_of_fence_characters_of_any_length_do_not_close_a_block(
    count: int, marks: str
) -> None:
    words = "x\n" + "\n".join(mark * count + "\n</details>" for mark in marks)
    block = fenced(words)
    page = read(f"{block}\n\nafter")
    assert page.code == [f"{words}\n"]
    # GitHub's parser knows fences of up to 255 characters: a longer one would be closed early.
    assert block.startswith("    ") or len(block.partition("\n")[0]) <= 255


@given(text)
def test_inline_code_is_one_code_span(text: str) -> None:
    code = inline_code(clean(text))
    page = read(f"a {code} b")
    assert len(page.code) == (1 if code else 0)
    assert set(page.tags) <= {"p", "code"}


@given(text)
def test_prose_contains_only_text(text: str) -> None:
    page = read(plain_prose(clean(text)))
    assert set(page.tags) <= {"p"}


@pytest.mark.parametrize("content", ["short", "🦀" * 3_000])
def test_a_run_of_a_thousand_steps_shows_its_start_and_its_end(content: str) -> None:
    commands = (
        (a.CmdRun(command=f"step {i}"), o.CmdOutput(content=content, exit_code=0))
        for i in range(1_000)
    )
    events = numbered([event for pair in commands for event in pair])
    comment = CommentTrace(events).render(20_000)
    assert 18_000 < utf16_length(comment) <= 20_000
    assert "`step 0`" in comment
    assert "`step 999`" in comment
    assert re.search(r"… \d+ steps omitted here", comment)
    read(comment)


def test_a_comment_begins_with_the_plan_and_leaves_the_last_message_to_the_comment() -> None:
    items = (PlanItem(title="look @octocat", status="done"), PlanItem(title="fix"))
    plan = [a.PlanUpdate(items=items), o.PlanUpdated()]
    events = numbered([*plan, a.CmdRun(command="ls"), a.Finish(message="All is well.")])
    comment = CommentTrace(events).render(GITHUB)
    read(comment)
    assert comment.index("✓ look @\u200boctocat") < comment.index("1. Plan")
    assert "All is well" not in comment


def test_code_bold_text_and_lists_are_kept() -> None:
    page = read(
        quote_markdown("**Next:** run `a_b` and\n- `x`\n- see `y`\n\n```py\nf(1)\n```\nend")
    )
    assert page.code == ["a_b", "x", "y", "f(1)\n"]
    assert {"strong", "ul", "li", "pre", "blockquote"} <= set(page.tags)


@pytest.mark.parametrize(
    "text",
    [
        "[x](https://evil.example) <b>@octocat</b> #1 ![i](https://evil.example/i.png)",
        "- # heading\n- - -\n- > quote\n- 1. x",
        "a `b\nc` d",
        "```\nnever closed @octocat #1",
        "~~~\n```\n~~~\n@octocat",
        "\ue0000\ue001 `x` \ue0009\ue001",
        "$`x`$ **@octocat** **#1**",
        "``",
        "*" * 5_000,
        "`" * 5_000,
        "```\n" * 5_000,
    ],
)
def test_all_other_markup_is_inert(text: str) -> None:
    page = read(quote_markdown(text))
    assert not {"a", "img", "h1", "h2", "h3", "b", "ol"} & set(page.tags)


@given(st.text(alphabet="`~*-_ \n\\@#:ab1.$<>[](){}!&", max_size=120))
def test_any_text_is_closed_and_inert(text: str) -> None:
    read(f"{quote_markdown(text)}\n\nafter")
