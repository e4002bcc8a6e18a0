"""Removes from a GitHub text what people who read it there cannot see, before a model reads it.

This covers invisible characters, HTML comments, hidden elements, hidden attributes, unfinished
tags, link titles, info strings of code blocks, surplus table cells, and unused link and footnote
definitions. Code is left alone: there all of this is visible. What is removed is counted and
described for a person.

The text is edited and not rendered, because people paste code without marking it as code, and a
model has to see `__init__`, `<module>` and indentation as they were written.

Hidden text is a way to give a model instructions that no reviewer notices (prompt injection).
"""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from resolver.github.text.drawings import strip_hidden_drawings
from resolver.github.text.markdown import (
    block_parser,
    link_parser,
)
from resolver.github.text.raw_html import (
    RawHtml,
    code_regions,
    end_of_element,
    has_hidden_html,
    is_hiding_tag,
    is_plain_image,
    read_raw_html,
    region_at,
    without_hidden_attributes,
)
from resolver.security.invisible_text import without_invisible

_MAX_PASSES = 8
"""Maximum number of passes over a text. Joining what is left can form hidden text again."""

_UNCOUNTED_DEPTH = 20
_MAX_DEEP_BRACKETS = 1_000
"""Maximum number of brackets that are nested deeper than `_UNCOUNTED_DEPTH` in their paragraph.

The parser visits each of them many times, and people hardly ever write them.
"""

_MAX_TABLE_CELLS = 10_000
"""Maximum number of cells in all tables, including those that the parser adds to short rows.

People write hundreds at most.
"""

_BRACKET = re.compile(r"(?P<open>[\[(])|(?P<close>[\])])|\n[ \t]*\n")
_DELIMITER_ROW_CHARACTERS = frozenset(" \t>*+-0123456789.):|")
"""Characters of the delimiter row of a table, also within lists and quotes."""

_CAN_HIDE = re.compile(r"[<\[$|]|```|~~~")
_LINK_TITLE = re.compile(
    r"""(\]\([ \t\n]*+
      (?:<[^<>\n]*>|(?>(?:[^()\s<>\\]+|\\\S|\((?>(?:[^()\s\\]+|\\\S)*)\))*))
    )[ \t\n]++
    (?:"(?>(?:[^"\\\n]+|\\.|\n(?![ \t]*\n))*)"
      |'(?>(?:[^'\\\n]+|\\.|\n(?![ \t]*\n))*)'
      |\((?>(?:[^()\\\n]+|\\.|\n(?![ \t]*\n))*)\)
    )[ \t\n]*+\)""",
    re.X,
)
_LANGUAGE = re.compile(r"[\w+#.:/-]{1,30}", re.A)
_PIPE = re.compile(r"(?<!\\)\|")
_FOOTNOTE = re.compile(r"^ {0,3}\[\^([^\]\n]+)\]:.*(?:\n(?:[ \t]+\S.*|[^\s\[].*))*", re.M)
ALT = "alternative text"
"""The label under which an `<img>` is counted that hides only its alternative text."""

_UNREADABLE_REST = "text behind too many open brackets or cells"


@dataclass(frozen=True)
class CleanedText:
    """A text as a person sees it. `removed` says what was removed, such as "2 HTML comments"."""

    text: str
    removed: tuple[str, ...] = ()


def strip_hidden(text: str) -> CleanedText:
    """Return `text` without what GitHub does not show. The function is idempotent."""
    removals: Counter[str] = Counter()
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    visible_text = without_invisible(text)
    invisible_characters = len(text) - len(visible_text)
    removals["invisible character"] += invisible_characters
    if invisible_characters and _CAN_HIDE.search(text):
        # `<!--` before an invisible character and `>` begins a comment, without it this is all.
        visible_text = without_invisible(_strip_shown_as_nothing(text, removals))
    if _CAN_HIDE.search(visible_text):
        visible_text = _strip_shown_as_nothing(visible_text, removals)
    return CleanedText(visible_text, _describe_removals(removals))


def _strip_shown_as_nothing(text: str, removals: Counter[str]) -> str:
    """Return the text without markup that GitHub does not show."""
    end = _end_of_tables(text)
    removals[_UNREADABLE_REST] += end < len(text)
    visible_text = text[:end]
    # Repeat until nothing changes: removing one construct can join the text around it into another.
    for _ in range(_MAX_PASSES):
        previous = visible_text
        visible_text = _strip_markup(read_raw_html(visible_text), removals)
        visible_text = _strip_block_text(visible_text, removals)
        visible_text = _strip_definitions(visible_text, removals)
        if visible_text == previous:
            visible_text = strip_hidden_drawings(visible_text, code_regions(visible_text), removals)
        if visible_text == previous:
            break
    else:
        visible_text = strip_hidden_drawings(visible_text, code_regions(visible_text), removals)
    if has_hidden_html(visible_text):
        # What looked like code to this module is not code to the parser: clean everything.
        for _ in range(_MAX_PASSES):
            previous = visible_text
            everything = [(0, len(visible_text))]
            visible_text = _strip_markup(RawHtml(visible_text, [], everything, []), removals)
            visible_text = _strip_definitions(visible_text, removals)
            if visible_text == previous:
                break
    if has_hidden_html(visible_text):
        removals["text that hides other text"] += 1
        visible_text = visible_text.replace("<", "&lt;")
    return _strip_titled_lines(visible_text, removals)


def _describe_removals(removals: Counter[str]) -> tuple[str, ...]:
    return tuple(_format_count(count, kind) for kind, count in removals.items() if count)


def end_of_readable(text: str) -> int:
    """Return the offset at which parsing would become too slow.

    That is where too many brackets are nested, or a table exceeds the limit on cells.
    """
    text = text[: _end_of_tables(text)]
    if text.count("[") + text.count("(") <= _MAX_DEEP_BRACKETS:
        return len(text)
    regions = code_regions(text)
    depth = {"[": 0, "(": 0}
    deep_brackets = 0
    for bracket in _BRACKET.finditer(text):
        if region_at(regions, bracket.start()):
            continue
        if bracket["open"]:
            depth[bracket["open"]] += 1
            deep_brackets += depth[bracket["open"]] > _UNCOUNTED_DEPTH
            if deep_brackets > _MAX_DEEP_BRACKETS:
                return bracket.start()
        elif bracket["close"]:
            opening = "[" if bracket["close"] == "]" else "("
            depth[opening] = max(0, depth[opening] - 1)
        else:
            depth = {"[": 0, "(": 0}
    return len(text)


def _end_of_tables(text: str) -> int:
    """Return the offset of the table with which the number of cells exceeds the limit."""
    cells = columns = start = position = 0
    previous_line = ""
    for line in text.split("\n"):
        if "|" in previous_line and "-" in line and _DELIMITER_ROW_CHARACTERS.issuperset(line):
            start = start if columns else position - len(previous_line) - 1
            columns = max(columns, line.count("|") + 1)
            cells += columns
        elif not line.strip(" \t>"):
            columns = 0
        cells += columns
        if cells > _MAX_TABLE_CELLS:
            return max(0, start)
        previous_line, position = line, position + len(line) + 1
    return len(text)


def _format_count(count: int, kind: str) -> str:
    return f"{count} {kind}" if count == 1 else f"{count:,} {kind}s"


def _strip_markup(markup: RawHtml, removals: Counter[str]) -> str:
    text = _strip_titles(markup, removals)
    if text != markup.text:
        return text  # offsets have changed; tags are left to the next pass
    parts: list[str] = []
    copied_end = 0
    position = text.find("<")
    while position != -1:
        region = region_at(markup.code, position)
        if region is not None:
            position = text.find("<", region[1])
            continue
        end, replacement = _find_hidden_construct(markup, position, removals)
        if end > position:
            parts += [text[copied_end:position], replacement]
            copied_end = end
        position = text.find("<", max(end, position + 1))
    return "".join([*parts, text[copied_end:]])


def _strip_titles(markup: RawHtml, removals: Counter[str]) -> str:
    def remove_title(match: re.Match[str]) -> str:
        position = match.start()
        is_raw = region_at(markup.code, position) or region_at(markup.html, position)
        if is_raw or match.end() > markup.end_of_lines(position):
            return match[0]
        removals["link title"] += 1
        return f"{match[1]})"

    return _LINK_TITLE.sub(remove_title, markup.text)


def _strip_titled_lines(text: str, removals: Counter[str]) -> str:
    """Return the text without the lines of links whose titles only the parser finds."""
    if "](" not in text:
        return text
    lines = text.split("\n")
    for token in link_parser().parse(text):
        if token.map and any(child.attrs.get("title") for child in token.children or ()):
            removals["link title"] += 1
            lines[token.map[0] : token.map[1]] = [""] * (token.map[1] - token.map[0])
    return "\n".join(lines)


def _strip_block_text(text: str, removals: Counter[str]) -> str:
    """Return the text without info strings of code blocks, except the language, and without the
    cells of a table that are beyond its last column."""
    lines = text.split("\n")
    columns = 0
    is_body = False
    for token in block_parser().parse(text):
        if token.type in {"table_open", "tbody_open"}:
            columns, is_body = (0, False) if token.type == "table_open" else (columns, True)
        elif token.type == "th_open":
            columns += 1
        elif token.type == "tr_open" and is_body and token.map:
            row = _without_surplus_cells(lines[token.map[0]], columns)
            removals["surplus table cell"] += row != lines[token.map[0]]
            lines[token.map[0]] = row
        elif token.type == "fence" and token.map and token.info.strip():
            info = token.info.strip()
            language = info.split()[0] if _LANGUAGE.fullmatch(info.split()[0]) else ""
            if language != info:
                removals["code block info string"] += 1
                opening = lines[token.map[0]].rstrip().removesuffix(info)
                lines[token.map[0]] = f"{opening}{language}"
    return "\n".join(lines)


def _without_surplus_cells(row: str, columns: int) -> str:
    ends = [pipe.start() for pipe in _PIPE.finditer(row)]
    if ends and not row[: ends[0]].strip(" \t>"):
        del ends[0]
    if len(ends) < columns or not row[ends[columns - 1] + 1 :].strip():
        return row
    return row[: ends[columns - 1] + 1]


def _find_hidden_construct(
    markup: RawHtml, position: int, removals: Counter[str]
) -> tuple[int, str]:
    """Return where the hidden construct at `position` ends and its replacement.

    Returns `position` itself if nothing is hidden there.
    """
    end_of_comment = markup.end_of_comment(position)
    if end_of_comment > position:
        removals["HTML comment"] += 1
        return end_of_comment, ""
    tag = markup.tag_at(position)
    if tag is None:
        end = markup.end_of_unfinished_tag(position)
        removals["unfinished HTML tag"] += end > position
        return end, ""
    if is_hiding_tag(tag):
        end = end_of_element(markup, tag)
        removals["hidden element"] += 1
        return end, ""
    visible_tag = without_hidden_attributes(tag)
    if visible_tag == tag[0]:
        return position, ""
    is_plain = is_plain_image(tag)
    removals[ALT if is_plain else "HTML tag with attributes that aren't shown"] += 1
    return tag.end(), visible_tag


def _strip_definitions(text: str, removals: Counter[str]) -> str:
    """Return the text without link definitions that no link uses and without unused footnotes.

    Such a definition is not shown; `[//]: # (note)` is a common way to write a comment.
    """
    readable_end = end_of_readable(text)
    removals[_UNREADABLE_REST] += readable_end < len(text)
    text = text[:readable_end]
    if "]:" not in text:
        return text
    environment: dict[str, Any] = {}
    tokens = link_parser().parse(text, environment)
    used_labels = {
        child.meta.get("label")
        for token in tokens
        for child in token.children or []
        if child.type in {"link_open", "image"}
    }
    lines = text.split("\n")
    definitions = [(k, d) for k, d in environment.get("references", {}).items()]
    definitions += [(None, d) for d in environment.get("duplicate_refs", [])]
    for label, definition in definitions:
        first, last = definition["map"]
        if label not in used_labels:
            removals["unused link definition"] += 1
            lines[first:last] = [""] * (last - first)
        elif definition["title"]:
            removals["link title"] += 1
            lines[first:last] = [f"[{label}]: <{definition['href']}>"] + [""] * (last - first - 1)

    def remove_unused(match: re.Match[str]) -> str:
        if text.count(f"[^{match[1]}]") > 1:
            return match[0]
        removals["unused footnote"] += 1
        return ""

    return _FOOTNOTE.sub(remove_unused, "\n".join(lines))
