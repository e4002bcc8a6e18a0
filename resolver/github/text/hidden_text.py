"""Removes from a GitHub text what people who read it there cannot see, before a model reads it.

This covers invisible characters, HTML comments, hidden elements, hidden attributes, link titles,
and unused link and footnote definitions. Code is left alone: there all of this is visible. What is
removed is counted and described for a person.

Hidden text is a way to give a model instructions that no reviewer notices (prompt injection).
"""

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from typing import Any

from resolver.github.text.drawn import strip_drawn
from resolver.github.text.markdown import block_parser, link_parser, without_invisible

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

_MAX_SEARCHED_TAGS = 200
"""Maximum number of tags that are searched for the end of a hidden element."""

_BRACKET = re.compile(r"(?P<open>[\[(])|(?P<close>[\])])|\n[ \t]*\n")
_DELIMITER_ROW_CHARACTERS = frozenset(" \t>*+-0123456789.):|")
"""Characters of the delimiter row of a table, also within lists and quotes."""

_CAN_HIDE = re.compile(r"[<\[$]|(?i:mermaid|math)")
_TAG = re.compile(
    r"""<(?P<close>/?)(?P<name>[A-Za-z][A-Za-z0-9-]*)
    (?P<attributes>(?:\s(?:[^<>"']|"[^"]{0,1000}"|'[^']{0,1000}'){0,1000})?)/?>""",
    re.X,
)
_ATTRIBUTE = re.compile(
    r"""([A-Za-z_:][\w:.-]*)(?:\s*=\s*("[^"]{0,1000}"|'[^']{0,1000}'|[^\s"'=<>`]{1,1000}))?"""
)
_SHOWN_ATTRIBUTES = {"href", "src", "open", "align", "width", "height", "colspan", "rowspan"}
_EMPTY_COMMENT = re.compile("<!---?>")
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0|font-size\s*:\s*0|"
    r"(?<![\w-])color\s*:\s*(?:transparent|white|\#fff)",
    re.I,
)
_HIDDEN_ELEMENTS = {
    "script", "style", "template", "noscript", "iframe", "object", "title", "head", "svg",
    "noembed", "noframes", "datalist",
}  # fmt: skip
_LINK_TITLE = re.compile(
    r"""(\]\([ \t\n]{0,10}<?[^()\s<>]{0,2000}>?)[ \t\n]{1,10}
    (?:"[^"\n]{0,2000}"|'[^'\n]{0,2000}')[ \t\n]{0,10}\)""",
    re.X,
)
_FOOTNOTE = re.compile(r"^ {0,3}\[\^([^\]\n]{1,200})\]:.*(?:\n(?:[ \t]+\S.*|[^\s\[].*))*", re.M)
_LINE_PREFIX = re.compile(r"[\s>*+\-0-9.)]*")

ALT = "alternative text"
"""The label under which an `<img>` is counted that hides only its alternative text."""

_UNREADABLE_REST = "text behind too many open brackets or cells"

Region = tuple[int, int]


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
    removals["invisible character"] += len(text) - len(visible_text)
    if not _CAN_HIDE.search(visible_text):
        return CleanedText(visible_text, _describe_removals(removals))
    end = _end_of_tables(visible_text)
    removals[_UNREADABLE_REST] += end < len(visible_text)
    visible_text = visible_text[:end]
    # Repeat until nothing changes: removing one construct can join the text around it into another.
    for _ in range(_MAX_PASSES):
        previous, visible_text = (
            visible_text,
            _strip_markup(visible_text, code_regions(visible_text), removals),
        )
        visible_text = _strip_definitions(visible_text, removals)
        if visible_text == previous:
            visible_text = strip_drawn(visible_text, code_regions(visible_text), removals)
        if visible_text == previous:
            break
    else:
        visible_text = strip_drawn(visible_text, code_regions(visible_text), removals)
    if _has_hidden_html(visible_text):
        # What looked like code to this module is not code to the parser: clean everything.
        for _ in range(_MAX_PASSES):
            previous, visible_text = (
                visible_text,
                _strip_definitions(_strip_markup(visible_text, [], removals), removals),
            )
            if visible_text == previous:
                break
    if _has_hidden_html(visible_text):
        removals["text that hides other text"] += 1
        visible_text = visible_text.replace("<", "&lt;")
    return CleanedText(visible_text, _describe_removals(removals))


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
    starts = [region[0] for region in regions]
    depth = {"[": 0, "(": 0}
    deep_brackets = 0
    for bracket in _BRACKET.finditer(text):
        region_index = bisect_right(starts, bracket.start()) - 1
        if region_index >= 0 and bracket.start() < regions[region_index][1]:
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


def _has_hidden_html(text: str) -> bool:
    if "<" not in text:
        return False
    tokens = link_parser().parse(text)
    html = [token.content for token in tokens if token.type == "html_block"]
    html += [
        child.content
        for token in tokens
        for child in token.children or []
        if child.type == "html_inline"
    ]
    return any(
        "<!" in part or "<?" in part or any(_is_hiding_tag(tag) for tag in _TAG.finditer(part))
        for part in html
    )


def _line_starts(text: str) -> list[int]:
    return [0, *(m.end() for m in re.finditer("\n", text)), len(text) + 1]


def code_regions(text: str) -> list[Region]:
    """Return the offsets of code blocks and code spans, in order."""
    starts = _line_starts(text)
    regions: list[Region] = []
    row_regions: set[Region] = set()
    for token in block_parser().parse(text):
        if token.map is None:
            continue
        first, last = (min(starts[min(line, len(starts) - 1)], len(text)) for line in token.map)
        if token.type in {"fence", "code_block"}:
            regions.append((first, last))
        elif token.type in {"inline", "tr_open"} and (first, last) not in row_regions:
            row_regions.add((first, last))  # all cells of a table row have the position of the row
            regions.extend(_code_spans(text, first, last))
    return sorted(regions)


def _code_spans(text: str, start: int, end: int) -> list[Region]:
    """Return the code spans between two offsets.

    As in CommonMark, the leftmost of backslash escape, code span and HTML tag takes precedence. See
    https://spec.commonmark.org/0.31.2/#code-spans
    """
    spans: list[Region] = []
    runs: dict[int, list[int]] = {}
    for run in re.compile("`+").finditer(text, start, end):
        runs.setdefault(len(run[0]), []).append(run.start())
    position = start
    while position < end:
        character = text[position]
        if character == "\\":
            position += 2
        elif character == "`":
            length = len(re.compile("`+").match(text, position, end)[0])  # type: ignore[index]
            closers = runs.get(length, [])
            index = bisect_right(closers, position + length - 1)
            if index < len(closers):
                spans.append((position, closers[index] + length))
                position = closers[index] + length
            else:
                position += length
        elif character == "<":
            tag = _TAG.match(text, position, end)
            position = tag.end() if tag else position + 1
        else:
            position += 1
    return spans


def _strip_markup(text: str, code: list[Region], removals: Counter[str]) -> str:
    parts: list[str] = []
    starts = [region[0] for region in code]
    copied_end = 0
    position = text.find("<")
    while position != -1:
        region_index = bisect_right(starts, position) - 1
        if region_index >= 0 and position < code[region_index][1]:
            position = text.find("<", code[region_index][1])
            continue
        end, replacement = _find_hidden_construct(text, position, removals)
        if end > position:
            parts += [text[copied_end:position], replacement]
            copied_end = end
        position = text.find("<", max(end, position + 1))
    result = "".join([*parts, text[copied_end:]])
    if code and parts:
        return result  # offsets have changed; link titles are left to the next pass
    return _strip_titles(result, code, removals)


def _strip_titles(text: str, code: list[Region], removals: Counter[str]) -> str:
    def remove_title(match: re.Match[str]) -> str:
        if any(first <= match.start() < last for first, last in code):
            return match[0]
        removals["link title"] += 1
        return f"{match[1]})"

    return _LINK_TITLE.sub(remove_title, text)


def _find_hidden_construct(text: str, position: int, removals: Counter[str]) -> tuple[int, str]:
    """Return where the hidden construct at `position` ends and its replacement.

    Returns `position` itself if nothing is hidden there.
    """
    empty_comment = _EMPTY_COMMENT.match(text, position)
    if empty_comment:
        removals["HTML comment"] += 1
        return empty_comment.end(), ""
    for opening, closing in (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">")):
        if text.startswith(opening, position):
            removals["HTML comment"] += 1
            end = text.find(closing, position + len(opening))
            return (
                _end_of_unclosed_comment(text, position) if end == -1 else end + len(closing)
            ), ""
    tag = _TAG.match(text, position)
    if tag is None:
        return position, ""
    if _is_hiding_tag(tag):
        end = _end_of_element(text, tag)
        removals["hidden element"] += 1
        return end, ""
    visible_tag = _without_hidden_attributes(tag)
    if visible_tag == tag[0]:
        return position, ""
    is_plain = _is_plain_image(tag)
    removals[ALT if is_plain else "HTML tag with attributes that aren't shown"] += 1
    return tag.end(), visible_tag


def _end_of_unclosed_comment(text: str, position: int) -> int:
    """Return the end of an unterminated comment.

    It hides the rest of the text if it begins a line, else the rest of its paragraph.
    """
    line = text[text.rfind("\n", 0, position) + 1 : position]
    if _LINE_PREFIX.fullmatch(line):
        return len(text)
    end = text.find("\n\n", position)
    return len(text) if end == -1 else end


def _is_hiding_tag(tag: re.Match[str]) -> bool:
    if tag["close"]:
        return False
    if tag["name"].lower() in _HIDDEN_ELEMENTS:
        return True
    for name, value in _ATTRIBUTE.findall(tag["attributes"]):
        if name.lower() == "hidden" or (name.lower() == "style" and _HIDDEN_STYLE.search(value)):
            return True
    return False


def _end_of_element(text: str, tag: re.Match[str]) -> int:
    if tag[0].endswith("/>"):
        return tag.end()
    depth = 1
    same_name = re.compile(rf"<(/?){re.escape(tag['name'])}\b[^<>]{{0,2000}}>", re.I)
    for index, match in enumerate(same_name.finditer(text, tag.end())):
        if index == _MAX_SEARCHED_TAGS:
            # Drop the rest: nothing hidden may remain, and searching further takes too long.
            return len(text)
        depth += -1 if match[1] else 1
        if depth == 0:
            return match.end()
    # GitHub shows an unclosed <script> as text; an unclosed hidden element hides all the rest.
    return tag.end() if tag["name"].lower() in _HIDDEN_ELEMENTS else len(text)


def _without_hidden_attributes(tag: re.Match[str]) -> str:
    if not tag["attributes"].strip():
        return tag[0]
    attributes = _ATTRIBUTE.findall(tag["attributes"])
    if all(name.lower() in _SHOWN_ATTRIBUTES for name, _ in attributes):
        return tag[0]
    visible_attributes = [
        f" {name}={value}" if value else f" {name}"
        for name, value in attributes
        if name.lower() in _SHOWN_ATTRIBUTES
    ]
    return f"<{tag['close']}{tag['name']}{''.join(visible_attributes)}>"


def _is_plain_image(tag: re.Match[str]) -> bool:
    """Return True for an `<img>` such as GitHub writes for a file that was dropped into a text."""
    names = {name.lower() for name, _ in _ATTRIBUTE.findall(tag["attributes"])}
    return tag["name"].lower() == "img" and names <= _SHOWN_ATTRIBUTES | {"alt"}


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
