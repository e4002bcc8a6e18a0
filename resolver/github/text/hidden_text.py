"""Removes from a GitHub text what people who read it there cannot see, before a model reads it.

The text is rendered, sanitized and read as a browser shows it. Its lines are kept as they were
written where they are seen: people paste code without marking it as code, and a model has to see
`__init__`, `<module>` and indentation. Of blocks of HTML, the words, links and pictures stay that
are seen. What was removed is counted and described for a person.

Hidden text is a way to give a model instructions that no reviewer notices (prompt injection).
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from resolver.github.text.markdown import block_parser
from resolver.github.text.markdown_source import Edit, MarkdownSource, apply_edits, parts_of
from resolver.github.text.page import HIDDEN_ELEMENTS, SHOWN_AS_TEXT, TAG, PageReader, sanitize
from resolver.security.invisible_text import without_invisible
from resolver.trace.plain import plural

_MAX_PASSES = 8
"""Maximum number of passes over a text. Joining what is left can form hidden text again."""

_UNCOUNTED_DEPTH = 20
_MAX_DEEP_BRACKETS = 1_000
"""Maximum number of brackets that are nested deeper than `_UNCOUNTED_DEPTH` in their paragraph.

The parser visits each of them many times, and people hardly ever write them.
"""

_BRACKET = re.compile(r"(?P<open>[\[(])|(?P<close>[\])])|\n[ \t]*\n")

_CAN_HIDE = re.compile(r"[<\[$|]|```|~~~")
_LANGUAGE = re.compile(r"[\w+#.:/-]{1,30}", re.A)
_FOOTNOTE = re.compile(r"^ {0,3}\[\^([^\]\n]+)\]:.*(?:\n(?:[ \t]+\S.*|[^\s\[].*))*", re.M)
_UNREADABLE_REST = "text behind too many open brackets"

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
_DIAGRAM_COMMENT = re.compile(r"%%\{(?s:.*?)\}%%|^[ \t]*%%.*$", re.M)
_PATTERNS = (
    (re.compile(r"<!--(?:(?s:.*?)-->|.*)"), "HTML comment", ""),
    (_FORMULA, "formula with hidden parts", "[formula]"),
)


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
    removed = tuple(plural(count, kind) for kind, count in removals.items() if count)
    return CleanedText(visible_text, removed)


def _strip_until_stable(text: str, removals: Counter[str]) -> str:
    for _ in range(_MAX_PASSES):
        previous = text
        end = end_of_readable(text)
        removals[_UNREADABLE_REST] += end < len(text)
        text = _strip_markdown(text[:end], removals)
        text = _strip_html(text, removals) if "<" in text else text
        # What looks like a footnote, comment or formula may contain a tag that hides what follows.
        text = _strip_patterns(_strip_footnotes(text, removals), removals)
        if text == previous:
            return text
    removals["text that hides other text"] += 1
    return text.replace("<", "&lt;")


def _strip_markdown(text: str, removals: Counter[str]) -> str:
    """Return the text without what markdown does not show, apart from HTML."""
    source = MarkdownSource(text)
    _strip_definitions(source, removals)
    for block in source.blocks:
        if block.type == "inline":
            source.replace(block, apply_edits(block.content, _title_edits(block, removals)))
        elif block.type == "fence":
            _strip_fence(source, block, removals)
        elif block.type == "tr_close":
            removals["surplus table cell"] += source.cut_row()
    return source.text()


def _strip_definitions(source: MarkdownSource, removals: Counter[str]) -> None:
    """Remove the link definitions that no link uses, and titles.

    Such a definition is not shown; `[//]: # (note)` is a common way to write a comment.
    """
    parts = (part for block in source.blocks for part in block.children or ())
    used_labels = {part.meta["label"] for part in parts if "label" in part.meta}
    for label, definition in source.definitions:
        first, last = definition["map"]
        if label not in used_labels:
            removals["unused link definition"] += 1
            source.set_lines(first, last)
        elif definition["title"]:
            removals["link title"] += 1
            source.set_lines(first, last, f"[{label}]: <{definition['href']}>")


def _title_edits(block: Token, removals: Counter[str]) -> Iterator[Edit]:
    for part, _, end in parts_of(block, "link_open", "image"):
        if part.attrs.get("title") and "label" not in part.meta:
            removals["link title"] += 1
            target = part.attrs.get("href", part.attrs.get("src", ""))
            yield part.meta["end_of_label"], end, f"(<{target}>)"


def _strip_patterns(text: str, removals: Counter[str]) -> str:
    if "<!--" not in text and not _HIDES_IN_FORMULA.search(text):
        return text
    source = MarkdownSource(text)
    for block in source.blocks:
        if block.type == "inline":
            source.replace(block, apply_edits(block.content, _pattern_edits(block, removals)))
    return source.text()


def _pattern_edits(block: Token, removals: Counter[str]) -> Iterator[Edit]:
    """Yield the edits that take away formulas with hidden parts, and comments without an end."""
    skipped = [(start, end) for _, start, end in parts_of(block, "code_inline", "html_inline")]
    hides = _HIDES_IN_FORMULA.search(block.content)
    for pattern, kind, replacement in _PATTERNS if hides else _PATTERNS[:1]:
        for match in pattern.finditer(block.content):
            is_shown = pattern is _FORMULA and not _HIDES_IN_FORMULA.search(match[0])
            if not is_shown and not any(first <= match.start() < end for first, end in skipped):
                removals[kind] += 1
                yield *match.span(), replacement


def _strip_fence(source: MarkdownSource, block: Token, removals: Counter[str]) -> None:
    """Strip a code block: its info string, and what is not seen of a drawing."""
    info, content = block.info.strip(), block.content
    language = (info.split() or [""])[0]
    if language != info or not _LANGUAGE.fullmatch(language or "text"):
        removals["code block info string"] += 1
        shown = language if _LANGUAGE.fullmatch(language) else ""
        source.replace_words((block.map or (0,))[0], info, shown)
    if language.casefold() == "math" and _HIDES_IN_FORMULA.search(content):
        removals["formula with hidden parts"] += 1
        source.replace(block, "")
    elif language.casefold() == "mermaid":
        edits = [(*comment.span(), "") for comment in _DIAGRAM_COMMENT.finditer(content)]
        removals["diagram comment"] += len(edits)
        source.replace(block, apply_edits(content, edits))


def _strip_footnotes(text: str, removals: Counter[str]) -> str:
    def remove_unused(match: re.Match[str]) -> str:
        if text.count(f"[^{match[1]}]") > 1:
            return match[0]
        removals["unused footnote"] += 1
        return ""

    return _FOOTNOTE.sub(remove_unused, text)


def _strip_html(text: str, removals: Counter[str]) -> str:
    """Return the text without what a browser does not show of its HTML.

    The text is rendered with a number in place of each piece between two tags. What the sanitizer
    leaves is read in order: a number that is seen becomes its piece again.
    """
    source, lowered = MarkdownSource(text), text.lower()
    page: list[str] = []
    raw: list[str] = []
    pieces: list[tuple[int, str]] = []
    # The numbers can't be forged, because no text contains its own hash.
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def keep(number: int, piece: str) -> None:
        page.append(f"\ue000{key}:{len(pieces)}\ue001")
        pieces.append((number, piece))

    def add_html(html: str) -> None:
        raw.append(TAG.sub(lambda t: f"&lt;{t[0][1:]}" if _is_text(t[2], lowered) else t[0], html))
        page.append(raw[-1])

    for number, block in enumerate(source.blocks):
        if block.type == "inline":
            position = 0
            for part, start, end in parts_of(block, "html_inline"):
                tag = TAG.match(part.content)
                if tag is None or not _is_text(tag[2], lowered):
                    is_kept = _BARE_TAG.fullmatch(part.content) is not None
                    keep(number, block.content[position : end if is_kept else start])
                    add_html(part.content)
                    position = end
            keep(number, block.content[position:])
        elif block.content:
            keep(number, "" if block.type == "html_block" else block.content)
            if block.type == "html_block":
                add_html(block.content)
        elif not block.hidden:
            page.append(f"<{'/' * (block.nesting < 0)}{block.tag}>")
    if not raw:
        return text
    _count_html(raw, removals)
    shown = _ShownText(key, pieces, removals).read("".join(page))
    for number, block in enumerate(source.blocks):
        if block.type == "inline" or block.content:
            source.replace(block, "".join(shown.get(number, ())))
    return source.text()


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
    """Collects what is seen of a page by block: pieces of the text, and words between HTML tags."""

    def __init__(self, key: str, pieces: Sequence[tuple[int, str]], removals: Counter[str]) -> None:
        super().__init__()
        self._numbers = re.compile(f"\ue000{key}:([0-9]+)\ue001")
        self._pieces = pieces
        self._removals = removals
        self._shown: dict[int, list[str]] = defaultdict(list)
        self._block = 0
        self._links: list[str] = []
        self._is_after_words = False

    def read(self, page: str) -> Mapping[int, Sequence[str]]:
        self.feed(sanitize(page))
        self.close()
        return self._shown

    def start(self, tag: str, attributes: dict[str, str], *, is_hidden: bool) -> None:
        if is_hidden:
            self._removals["hidden element"] += self._hiding == self.hides(tag, attributes)
            return
        if tag == "a":
            self._links.append(attributes.get("href", ""))
            self._add("[" if self._links[-1] else "")
        elif tag == "img" and "src" in attributes:
            self._add(f"![]{_link_target(attributes['src'])}")
        elif tag in _ENDS_LINE:
            self._end_line()

    def end(self, tag: str, *, is_hidden: bool) -> None:
        if is_hidden:
            return
        if tag == "a" and self._links and (url := self._links.pop()):
            self._add(f"]{_link_target(url)}")
        elif tag in _ENDS_LINE:
            self._end_line()

    def add(self, text: str, *, is_hidden: bool) -> None:
        for index, part in enumerate(self._numbers.split(text)):
            piece = part
            if index % 2:
                self._block, piece = self._pieces[int(part)]
            if piece and not is_hidden:
                self._add(piece)
                self._is_after_words = index % 2 == 0 and not piece.isspace()

    def _add(self, text: str) -> None:
        self._shown[self._block].append(text)

    def _end_line(self) -> None:
        if self._is_after_words:
            self._add("\n")
            self._is_after_words = False


def _link_target(url: str) -> str:
    return f"({url})" if re.fullmatch(r"[^\s()<>\\]+", url) else f"(<{_NOT_IN_URL.sub('', url)}>)"


def end_of_readable(text: str) -> int:
    """Return the offset at which too many brackets are nested, so that parsing becomes slow."""
    if text.count("[") + text.count("(") <= _MAX_DEEP_BRACKETS:
        return len(text)
    lines = text.split("\n")
    for token in block_parser().parse(text):
        if token.type in {"fence", "code_block"} and token.map:
            for row in range(token.map[0], min(token.map[1], len(lines))):
                lines[row] = " " * len(lines[row])
    depth = {"[": 0, "(": 0}
    deep_brackets = 0
    for bracket in _BRACKET.finditer("\n".join(lines)):
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
