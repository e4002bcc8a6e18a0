"""Removes from a GitHub text what people who read it there cannot see, before a model reads it.

The text is rendered, sanitized and read as a browser shows it. Its lines are kept as they were
written where they are seen: people paste code without marking it as code, and a model has to see
`__init__`, `<module>` and indentation. Of blocks of HTML, the words, links and pictures stay that
are seen. What was removed is counted and described for a person.

Hidden text is a way to give a model instructions that no reviewer notices (prompt injection).
"""

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from resolver.github.text.located import (
    LocatedBlock,
    code_regions,
    line_starts,
    locate,
    region_at,
)
from resolver.github.text.markdown import block_parser
from resolver.github.text.page import HIDDEN_ELEMENTS, SHOWN_AS_TEXT, TAG, PageReader, sanitize
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
_LANGUAGE = re.compile(r"[\w+#.:/-]{1,30}", re.A)
_FOOTNOTE = re.compile(r"^ {0,3}\[\^([^\]\n]+)\]:.*(?:\n(?:[ \t]+\S.*|[^\s\[].*))*", re.M)
_UNREADABLE_REST = "text behind too many open brackets or cells"

_ENDS_LINE = {"p", "div", "li", "td", "th", "tr", "summary", "h1", "h2", "h3", "h4", "br", "dt"}
_NOT_IN_URL = re.compile(r"[\s<>\\]")
_BARE_TAG = re.compile(r"</?(?!(?:a|img)\b)[A-Za-z][\w-]{0,60}\s*/?>", re.I)
"""A tag that carries no text but its own name, as in `<module>`."""

_PLAIN_TAG = re.compile(
    r"""</?[a-z][\w-]*(?:\s+(?:href|src)\s*=\s*(?:"[^"]*"|'[^']*')
    |\s+(?:open|align|width|height|colspan|rowspan)(?:\s*=\s*["']?[\w.%-]{0,20}["']?)?
    |(?<=<img)\s+alt="[^"]*"|\s+alt="[^"]*"(?=[^<>]*\ssrc=))*\s*/?>""",
    re.I | re.X,
)
"""A tag such as people write, and as GitHub writes for a picture. It is not reported."""

# Formulas and diagrams are drawn. Comments in them, and what is as white as the page, are not seen.
_FORMULA = re.compile(
    r"\$\$(?:[^$\\\n]|\\(?s:.)|\n(?![ \t]*\n)|\$(?!\$)){1,5000}?\$\$"
    r"|(?<![\w$\\])\$`[^`]{1,5000}`\$(?![\w$])"
    r"|(?<![\w$\\])\$(?![\s$`])(?:[^$\\\n]|\\.){1,2000}(?<!\s)\$(?![\w$])"
)
_HIDES_IN_FORMULA = re.compile(
    r"(?<!\\)(?:\\\\)*%|\\[hv]?phantom|\\(?:text)?color\s*(?:\[\s*\w{1,10}\s*\]\s*)?"
    r"\{\s*(?:white|transparent|\#?f{3}(?:f{3})?|(?:255\s*,\s*){2}255|(?:1\s*,\s*){2}1)\s*\}",
    re.I,
)
_DIAGRAM_COMMENT = re.compile(r"%%\{(?s:.*?)\}%%|(?<=^)[ \t]*%%.*$|(?<=^>)[ \t>]*%%.*$", re.M)
_COMMENT_LIKE = re.compile(r"<!--(?:(?s:.*?)-->|.*)")


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
        visible_text = without_invisible(_strip_until_stable(text, removals))
    if _CAN_HIDE.search(visible_text):
        visible_text = _strip_until_stable(visible_text, removals)
    removed = tuple(_format_count(*item) for item in removals.items() if item[1])
    return CleanedText(visible_text, removed)


def _format_count(kind: str, count: int) -> str:
    return f"{count} {kind}" if count == 1 else f"{count:,} {kind}s"


def _strip_until_stable(text: str, removals: Counter[str]) -> str:
    for _ in range(_MAX_PASSES):
        previous = text
        end = end_of_readable(text)
        removals[_UNREADABLE_REST] += end < len(text)
        text = _strip_once(text[:end], removals)
        text = _strip_outside_code(text, _COMMENT_LIKE, "HTML comment", "", removals)
        if _HIDES_IN_FORMULA.search(text):
            kind = "formula with hidden parts"
            text = _strip_outside_code(text, _FORMULA, kind, "[formula]", removals)
        if text == previous:
            return text
    removals["text that hides other text"] += 1
    return text.replace("<", "&lt;")


def _strip_once(text: str, removals: Counter[str]) -> str:
    environment: dict[str, Any] = {}
    blocks = locate(text, environment)
    edits = sorted(
        [
            *_definition_edits(text, blocks, environment, removals),
            *_title_edits(blocks, removals),
            *_fence_edits(text, blocks, removals),
            *_surplus_cell_edits(text, blocks, removals),
        ]
    )
    return _strip_footnotes(_strip_html(text, blocks, edits, removals), removals)


Edit = tuple[int, int, str]
"""The offsets of a part of the text, and what takes its place."""


def _definition_edits(
    text: str, blocks: Sequence[LocatedBlock], environment: dict[str, Any], removals: Counter[str]
) -> Iterator[Edit]:
    """Yield the edits that take away link definitions that no link uses, and titles.

    Such a definition is not shown; `[//]: # (note)` is a common way to write a comment.
    """
    used_labels = {part.token.meta.get("label") for block in blocks for part in block.parts}
    definitions: list[tuple[str | None, dict[str, Any]]] = [
        *environment.get("references", {}).items(),
        *((None, definition) for definition in environment.get("duplicate_refs", ())),
    ]
    starts = line_starts(text)
    for label, definition in definitions:
        start, end = (starts[line] for line in definition["map"])
        lines = "\n" * (definition["map"][1] - definition["map"][0] - 1)
        if label not in used_labels:
            removals["unused link definition"] += 1
            yield start, end - 1, lines
        elif definition["title"]:
            removals["link title"] += 1
            yield start, end - 1, f"[{label}]: <{definition['href']}>{lines}"


def _title_edits(blocks: Sequence[LocatedBlock], removals: Counter[str]) -> Iterator[Edit]:
    for part in (part for block in blocks for part in block.parts):
        token = part.token
        if token.attrs.get("title") and "label" not in token.meta:
            removals["link title"] += 1
            target = token.attrs.get("href", token.attrs.get("src", ""))
            yield part.end_of_label, part.end, f"(<{target}>)"


def _fence_edits(
    text: str, blocks: Sequence[LocatedBlock], removals: Counter[str]
) -> Iterator[Edit]:
    """Yield the edits of code blocks: their info strings, and what is not seen of drawings."""
    for block in blocks:
        if block.token.type != "fence":
            continue
        info = block.token.info.strip()
        language = (info.split() or [""])[0]
        opening, *lines = text[block.start : block.end].split("\n")
        body = "\n".join(lines[: block.token.content.count("\n")])
        start = block.start + len(opening) + 1
        if language != info or not _LANGUAGE.fullmatch(language or "text"):
            removals["code block info string"] += 1
            shown = language if _LANGUAGE.fullmatch(language) else ""
            yield block.start, start - 1, opening.rstrip().removesuffix(info) + shown
        if language.casefold() == "math" and _HIDES_IN_FORMULA.search(body):
            removals["formula with hidden parts"] += 1
            yield start, start + len(body), ""
        for comment in _DIAGRAM_COMMENT.finditer(body) if language.casefold() == "mermaid" else ():
            removals["diagram comment"] += 1
            yield start + comment.start(), start + comment.end(), ""


def _surplus_cell_edits(
    text: str, blocks: Sequence[LocatedBlock], removals: Counter[str]
) -> Iterator[Edit]:
    """Yield the edits that take away the cells of a table beyond its last column."""
    end = 0
    for block in blocks:
        if block.start >= 0:
            end = block.end
        elif block.token.type == "tr_close":
            end_of_line = (text.find("\n", end) + len(text) + 1) % (len(text) + 1)
            if text[end:end_of_line].strip(" \t|"):
                removals["surplus table cell"] += 1
                yield end, end_of_line, " |"


def _strip_footnotes(text: str, removals: Counter[str]) -> str:
    def remove_unused(match: re.Match[str]) -> str:
        if text.count(f"[^{match[1]}]") > 1:
            return match[0]
        removals["unused footnote"] += 1
        return ""

    return _FOOTNOTE.sub(remove_unused, text)


def _strip_outside_code(
    text: str, pattern: re.Pattern[str], kind: str, replacement: str, removals: Counter[str]
) -> str:
    if not pattern.search(text):
        return text
    code = code_regions(text)

    def remove(match: re.Match[str]) -> str:
        is_shown = pattern is _FORMULA and not _HIDES_IN_FORMULA.search(match[0])
        if is_shown or region_at(code, match.start()):
            return match[0]
        removals[kind] += 1
        return replacement

    return pattern.sub(remove, text)


def _strip_html(
    text: str, blocks: Sequence[LocatedBlock], edits: Sequence[Edit], removals: Counter[str]
) -> str:
    """Return the edited text without what a browser does not show of its HTML.

    The text is rendered with a number in place of each piece between two tags. What the sanitizer
    leaves is read in order: a number that is seen becomes its piece again.
    """
    lowered = text.lower()
    page = [""]
    raw: list[str] = []
    pieces: list[str] = []
    # The numbers can't be forged, because no text contains its own hash.
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    position = 0

    def keep(end: int) -> None:
        nonlocal position
        if end > position:
            page.append(f"\ue000{key}:{len(pieces)}\ue001")
            pieces.append(_apply_edits(text, position, end, edits))
            position = end

    def add_html(start: int, end: int, content: str) -> None:
        nonlocal position
        keep(start)
        position = end
        shown = TAG.sub(
            lambda tag: f"&lt;{tag[0][1:]}" if _is_text(tag[2], lowered) else tag[0], content
        )
        raw.append(shown)
        page.append(shown)

    for block in blocks:
        token = block.token
        if token.type == "html_block":
            add_html(block.start, block.end, token.content)
        elif token.type == "inline":
            for part in block.parts:
                tag = TAG.match(part.token.content)
                if part.token.type != "html_inline" or (tag and _is_text(tag[2], lowered)):
                    continue
                is_kept = _BARE_TAG.fullmatch(part.token.content) is not None
                add_html(part.end if is_kept else part.start, part.end, part.token.content)
            keep(block.end)
        elif token.type in {"fence", "code_block"}:
            keep(block.end)
        elif not token.hidden:
            page.append(f"<{'/' * (token.nesting < 0)}{token.tag}>")
    keep(len(text))
    if not raw:
        return "".join(pieces)
    _count_html(raw, removals)
    return _ShownText(key, pieces, removals).read("".join(page))


def _apply_edits(text: str, start: int, end: int, edits: Sequence[Edit]) -> str:
    parts: list[str] = []
    for index in range(bisect_left(edits, (start,)), len(edits)):
        first, last, replacement = edits[index]
        if first >= end:
            break
        parts += [text[start:first], replacement]
        start = max(start, last)
    return "".join([*parts, text[start:end]])


def _is_text(name: str, lowered: str) -> bool:
    """Return True for the name of an element whose tags GitHub shows as text."""
    name = name.lower()
    return name in SHOWN_AS_TEXT or (name in HIDDEN_ELEMENTS and f"</{name}" not in lowered)


def _count_html(raw: Sequence[str], removals: Counter[str]) -> None:
    """Count what the sanitizer will take away. This is for people, and need not be exact."""
    for html in raw:
        removals["HTML comment"] += html.count("<!") + html.count("<?")
        names = [name.lower() for closing, name in TAG.findall(html) if not closing]
        removals["hidden element"] += sum(name in HIDDEN_ELEMENTS for name in names)
        tags = [f"<{tag.partition('>')[0]}>" for tag in html.split("<")[1:] if tag[:1].isalpha()]
        removals["HTML tag with attributes that aren't shown"] += sum(
            _PLAIN_TAG.fullmatch(tag) is None for tag in tags
        )


class _ShownText(PageReader):
    """Collects what is seen of a page: the pieces of the text, and the words of blocks of HTML."""

    def __init__(self, key: str, pieces: Sequence[str], removals: Counter[str]) -> None:
        super().__init__()
        self._numbers = re.compile(f"\ue000{key}:([0-9]+)\ue001")
        self._pieces = pieces
        self._removals = removals
        self._parts: list[str] = []
        self._links: list[str] = []
        self._is_after_words = False

    def read(self, page: str) -> str:
        self.feed(sanitize(page))
        self.close()
        return "".join(self._parts)

    def start(self, tag: str, attributes: dict[str, str], *, is_hidden: bool) -> None:
        if is_hidden:
            self._removals["hidden element"] += self._hiding == self.hides(tag, attributes)
            return
        if tag == "a":
            self._links.append(attributes.get("href", ""))
            self._parts.append("[" if self._links[-1] else "")
        elif tag == "img" and "src" in attributes:
            self._parts.append(f"![]{_link_target(attributes['src'])}")
        elif tag in _ENDS_LINE:
            self._end_line()

    def end(self, tag: str, *, is_hidden: bool) -> None:
        if is_hidden:
            return
        if tag == "a" and self._links and (url := self._links.pop()):
            self._parts.append(f"]{_link_target(url)}")
        elif tag in _ENDS_LINE:
            self._end_line()

    def add(self, text: str, *, is_hidden: bool) -> None:
        for index, part in enumerate(self._numbers.split(text)):
            if part and not is_hidden:
                self._parts.append(self._pieces[int(part)] if index % 2 else part)
                self._is_after_words = index % 2 == 0 and not part.isspace()

    def _end_line(self) -> None:
        if self._is_after_words:
            self._parts.append("\n")
            self._is_after_words = False


def _link_target(url: str) -> str:
    return f"({url})" if re.fullmatch(r"[^\s()<>\\]+", url) else f"(<{_NOT_IN_URL.sub('', url)}>)"


def end_of_readable(text: str) -> int:
    """Return the offset at which parsing would become too slow.

    That is where too many brackets are nested, or a table exceeds the limit on cells.
    """
    text = text[: _end_of_tables(text)]
    if text.count("[") + text.count("(") <= _MAX_DEEP_BRACKETS:
        return len(text)
    starts = line_starts(text)
    code = [
        (starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)])
        for token in block_parser().parse(text)
        if token.type in {"fence", "code_block"} and token.map
    ]
    depth = {"[": 0, "(": 0}
    deep_brackets = 0
    for bracket in _BRACKET.finditer(text):
        if region_at(code, bracket.start()):
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
