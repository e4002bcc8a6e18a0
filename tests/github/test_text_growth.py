"""Tests that processing text takes time linear in its length."""

import time
from collections.abc import Callable

import pytest

from resolver.github.events.mentions import find_instruction
from resolver.github.text.comment_markdown import safe_markdown
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.links import references_in, without_pictures
from resolver.github.text.markdown import (
    code_span,
    escape,
    format_title,
    make_inert,
    without_notifications,
)

SIZE = 65_536
"""GitHub's limit for a comment, in characters."""

MAX_SECONDS = 5.0
"""A pattern that reads the rest of the text from each of its places takes 30 and more."""

REPEATED = [
    "a.", "a@", "a@b.", "http://", "http://a.", "www.", "www.a.", "<", "<a ", "</", "<!--", "<?",
    "<![CDATA[", "[", "](", "[a](", "[a]:", "![", "![a](", "`", "``a", "*", "**a", "_", "_a_", "~",
    "~~a", "@a", "@a/b ", "#1", "a/b#1 ", "a/b@", "GH-1", "deadbeef" * 5 + " ", "|", "|a",
    "\n|-|", "\n> ", "\n- ", "\n#", "> ", "- ", "    ", "\t", "(", "&", "&#", "\\", "$", "$`",
    "```\n", "~~~\n", "<details>", "<b>", "<table><tr><td>", "=", "-", "\n=\n", "1. ", "\n1. ",
    "[^a]:", "[^a]", "\n- [ ] ", ":", "a:b ", "mailto:a@", "\u200b", "\u202e", "e\u0301", "\x00",
    "\r", '<a href="', "<img src=", "\n\n\n[a]: <", "](<", "'", '"', "a`b``c", "**a*b", "[a][",
    "](u 'a", "](u (a", "<?", "<div\n\n<a '\n\n", "x <a b='", "<b hidden></b>", "\\<b hidden>",
    "```a b\n", "|\n", "a|b\n-|-\n1|2|3\n", "*a **b ", "[a]: /u\n", "<table hidden>",
    "[![", "\n\t- ", "{", "//", "a/", "a-", "a_", "-a.", "/approve\n",
    "@agent", "**_", "*a\n", "|a\n--\na\n",
]  # fmt: skip

READERS: dict[str, Callable[[str], object]] = {
    "code_span": code_span,
    "find_instruction": lambda text: find_instruction(text, "@agent"),
    "references_in": lambda text: list(references_in(text, "github.com")),
    "escape": escape,
    "inert": make_inert,
    "without_notifications": without_notifications,
    "safe_markdown": safe_markdown,
    "strip_hidden": strip_hidden,
    "title": format_title,
    "without_pictures": without_pictures,
}


@pytest.mark.attack
@pytest.mark.deep
@pytest.mark.parametrize("reader", READERS)
def test_repetitive_text_of_a_comments_size_is_parsed_quickly(reader: str) -> None:
    """A model repeats `a.` and similar pieces up to the length of a comment: each parser is
    fast."""
    slow = {}
    for piece in REPEATED:
        text = (piece * (SIZE // len(piece) + 1))[:SIZE]
        began = time.process_time()
        READERS[reader](text)
        seconds = time.process_time() - began
        if seconds > MAX_SECONDS:
            slow[piece] = seconds
    assert not slow


@pytest.mark.parametrize("name", ["a" * 100, "a" * 39 + "/" + "b" * 100])
def test_a_reference_with_the_longest_names_is_made_inert(name: str) -> None:
    assert make_inert(f"see {name}#12 there") == f"see `{name}#12` there"
