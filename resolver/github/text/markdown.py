"""The markdown parsers of Resolver: CommonMark with the extensions of GitHub that matter here."""

from functools import cache

from markdown_it import MarkdownIt


@cache
def markdown_parser() -> MarkdownIt:
    """Return a parser for tables and strikethrough too. Link tokens keep their label."""
    return MarkdownIt("commonmark", {"store_labels": True}).enable(["table", "strikethrough"])


@cache
def link_parser() -> MarkdownIt:
    """Return a parser for links and HTML only.

    It skips emphasis, which halves the time for a text that is full of asterisks.
    """
    parser = MarkdownIt("commonmark", {"store_labels": True}).enable("table")
    return parser.disable(["emphasis", "balance_pairs"])


@cache
def block_parser() -> MarkdownIt:
    """Return a parser for blocks only. It does not parse the content of lines."""
    parser = MarkdownIt("commonmark").enable("table")
    return parser.disable(["inline", "text_join"])
