"""Renders the templates of prompts/comments/, which escape what they are given.

Each text becomes one line without markup, mentions or references, unless it is markdown already:
what a filter has made, and what the template says itself. So a template reads the values of a run
as they are, and can't pass on by mistake what a model or a user wrote.
"""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from jinja2 import Environment, nodes, pass_context
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context
from markupsafe import Markup

from resolver.config.templates import environment_options
from resolver.github.text.comment_markdown import is_closed, safe_markdown
from resolver.github.text.markdown import code_span, fence, shorten_text, single_line, visible
from resolver.models.truncate import keep_last_lines
from resolver.models.verification import totals_of
from resolver.security.invisible_text import with_invisible_shown
from resolver.trace.plain import duration, money
from resolver.trace.untrusted_text import utf16_length

_MAX_LINE = 800
"""Maximum number of characters of a text that no filter shortens."""

_PAGE = re.compile(r"https?://[^\s<>()]+")


MAX_NAMES = 10
"""Maximum number of tests that are named in one list."""


@dataclass(frozen=True)
class DetailLevel:
    """Limits for one level of detail in a text of a run.

    `message` is a length in UTF-16 units, `output` (of one command) a length in characters.
    `files`, `commands` and `lines` (of lists such as warnings) are numbers of items.
    """

    message: int
    files: int
    commands: int
    output: int
    lines: int


LEVELS = (
    DetailLevel(message=12_000, files=100, commands=15, output=1_500, lines=30),
    DetailLevel(message=4_000, files=30, commands=8, output=400, lines=10),
    DetailLevel(message=1_000, files=10, commands=3, output=100, lines=5),
)


def safe(markdown: Any) -> Markup:
    """Return markdown in which nothing needs to be escaped as such."""
    return Markup(markdown)  # noqa: S704 - the caller has made or escaped it


def line(text: str, limit: int = _MAX_LINE) -> Markup:
    """Return the text as one line without markup. What is markdown already is returned as it is."""
    return text if isinstance(text, Markup) else safe(single_line(str(text or ""), limit))


def code(text: str | None, limit: int = 200, *, in_table: bool = False) -> Markup:
    """Return the text as inline code on one line, "" for none."""
    shown = shorten_text(" ".join(str(text or "").split()), limit)
    return safe(code_span(shown, in_table=in_table))


def command(mention: str, *words: str) -> Markup:
    """Return a comment that commands Resolver, as inline code."""
    return code(" ".join(str(word) for word in (mention, *words) if word))


def minute(moment: datetime) -> Markup:
    """Return a point in time, to the minute."""
    return safe(f"{moment:%Y-%m-%d %H:%M} UTC")


def second(moment: datetime) -> Markup:
    """Return a point in time, to the second."""
    return safe(f"{moment:%Y-%m-%d %H:%M:%S} UTC")


def block(text: str, language: str | None = None) -> Markup:
    """Return the text in a code block, "" for none."""
    return safe(fence(str(text), language) if text else "")


def output(text: str, limit: int) -> Markup:
    """Return the last lines of a command's output in a code block, "" for none."""
    shown = visible(str(text)).strip("\n")
    return safe(fence(keep_last_lines(shown, limit)) if shown.strip() else "")


def html_code(text: str, limit: int = 200) -> Markup:
    """Return the text on one line, escaped for an HTML element."""
    return safe(html.escape(shorten_text(" ".join(visible(str(text)).split()), limit)))


def page(url: str) -> Markup:
    """Return the address if it can be linked as it is, else ""."""
    return safe(url if _PAGE.fullmatch(str(url)) else "")


def sentence(text: str) -> Markup:
    """Return the text as one line that ends with a punctuation mark, "" for none."""
    shown = line(text)
    return shown if not shown or shown[-1] in ".!?…" else safe(f"{shown}.")


def capitalized(text: str) -> Markup:
    """Return the text as a line that begins with a capital letter."""
    shown = line(text)
    return safe(f"{shown[:1].upper()}{shown[1:]}")


def join(parts: Iterable[Any], separator: str = "") -> Markup:
    """Return the parts joined, each escaped unless it is markdown."""
    return safe(line(separator).join(_finalize(part) for part in parts))


def named(names: Sequence[str]) -> Markup:
    """Return the first names, and the number of the others."""
    left_out = len(names) - MAX_NAMES
    more = safe(f" and {left_out} more") if left_out > 0 else safe("")
    return join([code(name) for name in names[:MAX_NAMES]], safe(", ")) + more


@pass_context
def _markdown(context: Context, text: str | None, limit: int) -> Markup:
    """Return a model's text about the run of the report, as harmless markdown."""
    report = context["report"]
    own_issue, host = report.trigger.subject, report.forge_host
    return safe(safe_markdown(text or "", own_issue=own_issue, limit=limit, forge_host=host))


def _finalize(value: Any) -> Any:
    if value is None:
        return safe("")
    return line(value) if isinstance(value, str) else safe(value)


class _MarkdownGenerator(CodeGenerator):
    """Compiles a template so that its own text is markdown, and so that `~` escapes the rest."""

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:
        if isinstance(node.value, str):
            self.write(f"Markup({node.value!r})")
        else:
            super().visit_Const(node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.filters['join']((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class _MarkdownEnvironment(Environment):
    code_generator_class = _MarkdownGenerator


def markdown_environment() -> Environment:
    """Return the environment of the templates of comments."""
    environment = _MarkdownEnvironment(
        **environment_options(),
        autoescape=True,  # keeps what a block, a macro or a filter has made apart from other text
        finalize=_finalize,
    )
    environment.filters |= {
        "block": block,
        "capitalized": capitalized,
        "code": code,
        "collapsed": lambda text: safe(re.sub(r"\n{3,}", "\n\n", str(text).strip())),
        "command": command,
        "duration": lambda seconds: safe(duration(seconds)),
        "html_code": html_code,
        "join": join,
        "line": line,
        "md": _markdown,
        "minute": minute,
        "money": lambda cost: safe(money(cost)),
        "named": named,
        "output": output,
        "page": page,
        "second": second,
        "sentence": sentence,
        "shown": lambda text: with_invisible_shown(str(text)),
        "totals": totals_of,
        "truncated": shorten_text,
        "utf16_length": lambda text: utf16_length(str(text or "")),
    }
    environment.globals["max_names"] = MAX_NAMES
    return environment


@cache
def _environment() -> Environment:
    return markdown_environment()


def render_comment(name: str, **values: Any) -> str:
    """Return the template `prompts/comments/<name>` rendered with the values, as markdown."""
    return str(_environment().get_template(f"comments/{name}").render(**values))


def render_to_fit(name: str, limit: int, **values: Any) -> str:
    """Return the template rendered at the highest level of detail at which it is closed and has at
    most `limit` UTF-16 units."""
    for detail in LEVELS:
        text = render_comment(name, detail=detail, **values).strip()
        if utf16_length(text) <= limit and is_closed(text):
            break
    return text
