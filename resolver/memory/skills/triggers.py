"""Decides whether a text asks for a skill. Triggers match whole words, never parts of words.

- A trigger of several words is a phrase; its words may be separated by any white space.
- A trigger in lower case ignores case; one with a capital is matched exactly (`CI`).
- A name that is also a plain English word (any capitalised word such as `React`, and the lower-case
  words of a list, such as `go` and `rust`) matches only in a technical form: in code, with a file
  ending, a path or a version (`react.js`, `go 1.22`), or capitalised where ordinary words are not.
- URLs and mentions of people (`@react`) are ignored, as is what the author pasted rather than
  wrote: code blocks, quotations, logs, tracebacks, version listings, file paths of a machine.
- Letters of scripts that don't separate words by spaces, or attach particles to them, count as
  word boundaries: `docker` matches in `dockerの設定`.

A skill may also name repository paths by glob patterns in the style of `.gitignore` and editor
rules.
"""

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from markdown_it import MarkdownIt

from resolver.models.path_globs import ANY_NAMES, PathPattern, compile_path_pattern, matches_path

MAX_LINE_LENGTH: Final = 400
"""Maximum characters of a line that are examined: the patterns below may backtrack."""

_QUOTED_BLOCKS: Final = frozenset({"fence", "code_block", "blockquote_open"})

_NAME: Final = r"[\w.+-]+(?:\s+version)?"
_VERSION: Final = r"v?\d+(?:\.\d+)+[\w.+-]*"
_VERSION_LINE: Final = re.compile(rf"\W*{_NAME}(?:==|\s*[:=]\s*|\s+|[@-]){_VERSION}\W*")
"""A line that consists of a name and its version, as in `pip list` or issue forms."""

_SEVERAL_VERSIONS: Final = re.compile(
    rf"\b[\w.+]+(?:==|[@-]){_VERSION}.*\b[\w.+]+(?:==|[@-]){_VERSION}"
)
"""Several names with versions, as in the first lines of a test run (program and plugins)."""

_LOG_LINE: Final = re.compile(
    r"\s*(?:"
    r"\[?\d{4}-\d\d-\d\d[T ]\d|\[?\d\d:\d\d:\d\d|"
    r"\[(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR)\]|(?:TRACE|DEBUG|INFO|WARNING|ERROR)[: ]|"
    r"Traceback \(most recent|File \".*\", line \d|at \S+\(.*\)\s*$|"
    r"\$ |>>> |\.\.\. |platform \w+ -- |plugins: |E {2,}"
    r")"
)
_FRAME: Final = re.compile(r"\s*File \".*\", line \d")
"""A frame of a Python traceback; the line after it is source code."""

_UNUSUAL_LINE_END: Final = re.compile(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

_MACHINE_PATH: Final = re.compile(
    r"(?<![\w.:/\\-])(?:~|[A-Za-z]:)?[/\\](?:[\w.+@~-]+[/\\])+[\w.+@~-]*"
)


def remove_quotations(text: str) -> str:
    """Return the text with pasted parts replaced by spaces. Line breaks and code spans in prose
    are kept."""
    # `splitlines` splits at more characters than the parser, whose line numbers are used below
    text = _UNUSUAL_LINE_END.sub(" ", text)
    lines = text.splitlines(keepends=True)
    quoted_lines = _quoted_lines(text)
    is_after_frame = False
    for number, line in enumerate(lines):
        content = line.rstrip("\r\n")
        if number in quoted_lines or is_after_frame or _is_pasted(content):
            lines[number] = " " * len(content) + line[len(content) :]
        is_after_frame = _FRAME.match(content) is not None
    return _MACHINE_PATH.sub(lambda found: " " * len(found[0]), "".join(lines))


def _is_pasted(line: str) -> bool:
    line = line[:MAX_LINE_LENGTH]
    return (
        _VERSION_LINE.fullmatch(line) is not None
        or _LOG_LINE.match(line) is not None
        or _SEVERAL_VERSIONS.search(line) is not None
    )


def _quoted_lines(text: str) -> set[int]:
    """Return the numbers of lines in code blocks and quotations, as CommonMark defines them."""
    numbers: set[int] = set()
    for token in _parser().parse(text):
        if token.type in _QUOTED_BLOCKS and token.map:
            numbers.update(range(*token.map))
    return numbers


@cache
def _parser() -> MarkdownIt:
    # block structure is all that is needed, so inline parsing is switched off
    return MarkdownIt("commonmark").disable(["inline", "text_join"])


MAX_ALTERNATIVES = 64

_CHARACTER_SET: Final = re.compile(r"\[(?:([!^]?)([^\[\]]+)\])?")


def covers(glob: str, path: str) -> bool:
    """Return True if the glob matches the path (from the repository's root, no leading slash).

    `*` and `?` match within one folder, `**` matches any number of folders, `{a,b}` matches either,
    `[ab]` one of the characters. A glob without a slash matches files of that name in any folder;
    one with a trailing slash matches all files below the folder. The time is at most proportional
    to the product of both lengths.
    """
    names = path.split("/")
    return any(matches_path(pattern, names) for pattern in _glob_patterns(glob))


@cache
def _glob_patterns(glob: str) -> tuple[PathPattern, ...]:
    return tuple(_glob_pattern(expanded) for expanded in _alternatives(glob.strip()))


def _alternatives(glob: str) -> list[str]:
    """Return the glob without braces: one glob for each combination of their alternatives."""
    pending: list[str] = [glob]
    expanded: list[str] = []
    while pending and len(pending) + len(expanded) <= MAX_ALTERNATIVES:
        candidate = pending.pop()
        braces = re.search(r"\{([^{}]*)\}", candidate)
        if braces is None:
            expanded.append(candidate)
        else:
            parts = braces[1].split(",")
            pending += [
                candidate[: braces.start()] + part + candidate[braces.end() :] for part in parts
            ]
    return expanded


def _glob_pattern(glob: str) -> PathPattern:
    glob = glob.removeprefix("./")
    glob += "**" if glob.endswith("/") else ""
    glob = glob.removeprefix("/") if "/" in glob else f"**/{glob}"
    parts = re.sub(r"(^|/)\*\*+(?=[^/*])", r"\1**/*", glob).split("/")
    if set(parts[-1]) == {"*"} and len(parts[-1]) > 1:
        parts[-1:] = ["**", "*"]
    return compile_path_pattern(
        tuple(ANY_NAMES if re.fullmatch(r"\*\*+", part) else _as_fnmatch(part) for part in parts)
    )


def _as_fnmatch(name: str) -> str:
    """Return the glob of one name as `fnmatch` reads it.

    `fnmatch` negates a set by `!` only, and a range in reverse order (`z-a`) matches nothing there.
    Here its characters stand for themselves.
    """
    return _CHARACTER_SET.sub(_fnmatch_set, name)


def _fnmatch_set(match: re.Match[str]) -> str:
    negation, characters = match.groups()
    if characters is None:
        return "[[]"  # a bracket that begins no set
    if any(first > last for first, last in re.findall("(.)-(.)", characters, re.DOTALL)):
        characters = f"{characters.replace('-', '')}-"
    return f"[{'!' if negation else ''}{characters}]"


MAX_TEXT_LENGTH = 300_000

_TOOL_NAMES = """
    ant apollo atom babel backbone beam bun celery chef cobra crystal cypress dart dash deno echo
    elixir elm ember express factor falcon fiber flask flutter gin go grails hive ink julia lit make
    mercury mint mongo nest next nim node oak parcel pig playwright pony prettier puppet rails rake
    react reason remix rocket rome rollup ruby rust salt sass scala scheme solid spark spring storm
    svelte swift tower vault vite vue zip
"""
PLAIN_WORDS = frozenset(_TOOL_NAMES.split())
"""Names of tools that are also plain words: in lower case, they are weak evidence."""

_FOLLOWING_WORDS = """
    a all an and ahead any as at away back by down each every for from her here his how if in into
    it its just me more my not now of off on only or our out over quickly so some sure that the
    their them then there these this those through to together too under up us use we well what
    when where which while why with without you your
"""
_SMALL_WORDS = frozenset(_FOLLOWING_WORDS.split())
"""Words that often follow a verb at the beginning of a sentence, and rarely the name of a tool."""

_UNSPACED_SCRIPTS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean letters, as a range of a character class.
"""

_LETTER = re.compile(rf"[^\W{_UNSPACED_SCRIPTS}]")
_URL = re.compile(r"\b[a-z][a-z0-9+-]{0,20}://[^\s<>\"')\]]+", re.IGNORECASE)
_MENTION = re.compile(r"(?<![\w/.@])@[\w-]+(?![\w/])")
_CODE_SPAN = re.compile(r"`[^`]+`")
_SENTENCE_START = re.compile(r"(?:[.!?:;]\s+|[\n\r][\s>#*+\-\d.)\"'“(\[]*)[\"'“(\[*_#\s]*\Z")
_JOINED_BEFORE = re.compile(r"(?:\w[/.]|@)\Z")
_JOINED_AFTER = re.compile(r"[/@]\w|\.(?:[a-z]{1,5}\b|\d)")
_VERSION_AFTER = re.compile(r"\s+v?\d+(?:\.\d+)+|\s+v\d")
_NUMBER = re.compile(r"\s+v?\d")
_NEXT_WORD = re.compile(r"\s+([A-Za-z]+)")
_CONTEXT_LENGTH = 60


@dataclass(frozen=True)
class Text:
    """Represents a text with ignored parts replaced by spaces.

    code: offsets at which code spans begin and end, alternating.
    folded: the text in lower case, for a quick look whether it may contain a word.
    """

    text: str
    code: tuple[int, ...]
    folded: str

    def is_code(self, offset: int) -> bool:
        """Return True if the character at that offset is in a code span."""
        return bisect.bisect_right(self.code, offset) % 2 == 1


def prepare_text(text: str) -> Text:
    """Return the text prepared for matching with many triggers."""
    text = remove_quotations(text[:MAX_TEXT_LENGTH])
    for pattern in (_URL, _MENTION):
        text = pattern.sub(lambda found: " " * len(found[0]), text)
    return Text(text, tuple(_code_edges(text)), _fold(text))


def _code_edges(text: str) -> Iterator[int]:
    """Yield the offsets at which code spans begin and end, alternating."""
    offset = 0
    for line in text.splitlines(keepends=True):
        for span in _CODE_SPAN.finditer(line):
            yield offset + span.start()
            yield offset + span.end()
        offset += len(line)


def _fold(text: str) -> str:
    """Return the text with each letter that a pattern may match as an ASCII letter, if it ignores
    case, replaced by that letter."""
    # Patterns take the Turkish letters İ and ı for an i, casefold() does not.
    return text.replace("İ", "i").casefold().replace("ı", "i")


def find_triggers(trigger: str, text: Text) -> str:
    """Return the first match of the trigger as the text spells it, or ""."""
    if trigger.isascii() and not all(word in text.folded for word in _fold(trigger).split()):
        return ""  # before a pattern is compiled, which most triggers never need
    is_plain = _is_plain_word(trigger)
    for match in _word_matches(trigger, text.text):
        if not is_plain or _is_technical(match, text):
            return " ".join(match[0].split())
    return ""


def _is_plain_word(trigger: str) -> bool:
    capitalised = re.fullmatch(r"[A-Z][a-z]+", trigger) is not None
    return capitalised or trigger.lower() in PLAIN_WORDS


def _word_matches(trigger: str, text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of the trigger that have no letter next to them.

    The neighbouring letters are checked outside of the pattern: inside of it, they would make each
    trigger take 10 ms to compile.
    """
    position = 0
    while match := _trigger_pattern(trigger).search(text, position):
        start, end = match.span()
        has_adjacent_letter = (start and _LETTER.match(text, start - 1)) or _LETTER.match(text, end)
        position = start + 1 if has_adjacent_letter else end
        if not has_adjacent_letter:
            yield match


@cache
def _trigger_pattern(trigger: str) -> re.Pattern[str]:
    """Compile the trigger itself. Punctuation at its ends is part of it (`c++`), and must not be
    repeated in the text."""
    words = r"\s+".join(re.escape(word) for word in trigger.split())
    before = "" if re.match(r"\w", trigger) else f"(?<!{re.escape(trigger[0])})"
    after = "" if re.search(r"\w\Z", trigger) else f"(?!{re.escape(trigger[-1])})"
    any_case = trigger == trigger.lower() or _is_plain_word(trigger)
    flags = re.IGNORECASE if any_case else re.NOFLAG
    return re.compile(f"{before}{words}{after}", flags)


def _is_technical(match: re.Match[str], text: Text) -> bool:
    """Return True if the match has a technical form, as described at the top of this module."""
    if text.is_code(match.start()):
        return True
    start = max(0, match.start() - _CONTEXT_LENGTH)
    before = ("" if start else "\n") + text.text[start : match.start()]
    after = text.text[match.end() : match.end() + _CONTEXT_LENGTH]
    if _JOINED_BEFORE.search(before) or _JOINED_AFTER.match(after) or _VERSION_AFTER.match(after):
        return True
    if not re.fullmatch(r"[A-Z][a-z]*", match[0]):
        return False
    if _NUMBER.match(after):
        return True
    if _SENTENCE_START.search(before):
        following = _NEXT_WORD.match(after)
        return following is not None and following[1].lower() not in _SMALL_WORDS
    return True
