"""Pieces of markdown and HTML, of which property tests make texts that nobody would write."""

from collections.abc import Iterable

from hypothesis import strategies as st

MARKUP = [
    "`", "```", "~~~", "\n", "\n\n", "    ", "\t", "\\", "> ", "- ", "1. ", "# ", "**", "_", "~~",
    "[", "](", ")", "]", "[a]", "[a]: http://u", "![", "[^1]", "| a | b |\n|-|-|\n", "|", "---",
    "<!--", "-->", "<", ">", "<b>", "</b>", "<img src=x>", "<details>", "</details>", "<script>",
    "$", "&#64;bob", "\u200b", "👩‍👧", "words", " ", "a", "u",
]  # fmt: skip


def soup(*more: str, max_size: int = 25, markup: Iterable[str] = MARKUP) -> st.SearchStrategy[str]:
    """Texts of these pieces. more: what the test is about, as frequent as all markup together."""
    pieces = st.sampled_from(list(markup))
    either = pieces | st.sampled_from(more) if more else pieces
    return st.lists(either, max_size=max_size).map("".join)
