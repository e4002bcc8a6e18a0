"""The one markdown parser of this program: what GitHub shows, as CommonMark defines it."""

from functools import cache

from markdown_it import MarkdownIt


@cache
def markdown_parser() -> MarkdownIt:
    """CommonMark with tables and strikethrough; a link's tokens keep the label they came from."""
    return MarkdownIt("commonmark", {"store_labels": True}).enable(["table", "strikethrough"])


@cache
def link_parser() -> MarkdownIt:
    """The same for who asks for links and HTML alone, of which emphasis is no matter: a text full
    of asterisks is parsed in half the time."""
    parser = MarkdownIt("commonmark", {"store_labels": True}).enable("table")
    return parser.disable(["emphasis", "balance_pairs"])


@cache
def block_parser() -> MarkdownIt:
    """The same for who asks for blocks alone: what is in a line is not looked at."""
    parser = MarkdownIt("commonmark").enable("table")
    return parser.disable(["inline", "text_join"])
