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

MAX_LINE: Final = 400
"""Maximum characters of a line that are examined: the patterns below may backtrack."""

_BLOCKS: Final = frozenset({"fence", "code_block", "blockquote_open"})

_NAME: Final = r"[\w.+-]+(?:\s+version)?"
_VERSION: Final = r"v?\d+(?:\.\d+)+[\w.+-]*"
_LISTED: Final = re.compile(rf"\W*{_NAME}(?:==|\s*[:=]\s*|\s+|[@-]){_VERSION}\W*")
"""A line that consists of a name and its version, as in `pip list` or issue forms."""

_LISTED_TWICE: Final = re.compile(
    rf"\b[\w.+]+(?:==|[@-]){_VERSION}.*\b[\w.+]+(?:==|[@-]){_VERSION}"
)
"""Several names with versions, as in the first lines of a test run (program and plugins)."""

_LOGGED: Final = re.compile(
    r"\s*(?:"
    r"\[?\d{4}-\d\d-\d\d[T ]\d|\[?\d\d:\d\d:\d\d|"
    r"\[(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR)\]|(?:TRACE|DEBUG|INFO|WARNING|ERROR)[: ]|"
    r"Traceback \(most recent|File \".*\", line \d|at \S+\(.*\)\s*$|"
    r"\$ |>>> |\.\.\. |platform \w+ -- |plugins: |E {2,}"
    r")"
)
_FRAME: Final = re.compile(r"\s*File \".*\", line \d")
"""A frame of a Python traceback; the line after it is source code."""

_ODD_LINE_END: Final = re.compile(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

_MACHINE_PATH: Final = re.compile(
    r"(?<![\w.:/\\-])(?:~|[A-Za-z]:)?[/\\](?:[\w.+@~-]+[/\\])+[\w.+@~-]*"
)


def remove_quotations(text: str) -> str:
    """Return the text with pasted parts replaced by spaces. Line breaks and code spans in prose
    are kept."""
    # `splitlines` splits at more characters than the parser, whose line numbers are used below
    text = _ODD_LINE_END.sub(" ", text)
    lines = text.splitlines(keepends=True)
    quoted = _quoted_lines(text)
    frame = False
    for number, line in enumerate(lines):
        words = line.rstrip("\r\n")
        if number in quoted or frame or _is_pasted(words):
            lines[number] = " " * len(words) + line[len(words) :]
        frame = _FRAME.match(words) is not None
    return _MACHINE_PATH.sub(lambda found: " " * len(found[0]), "".join(lines))


def _is_pasted(line: str) -> bool:
    line = line[:MAX_LINE]
    return (
        _LISTED.fullmatch(line) is not None
        or _LOGGED.match(line) is not None
        or _LISTED_TWICE.search(line) is not None
    )


def _quoted_lines(text: str) -> set[int]:
    """Return the numbers of lines in code blocks and quotations, as CommonMark defines them."""
    found: set[int] = set()
    for token in _parser().parse(text):
        if token.type in _BLOCKS and token.map:
            found.update(range(*token.map))
    return found


@cache
def _parser() -> MarkdownIt:
    # block structure is all that is needed, so inline parsing is switched off
    return MarkdownIt("commonmark").disable(["inline", "text_join"])


MAX_ALTERNATIVES = 64


def covers(glob: str, path: str) -> bool:
    """Return True if the glob matches the path (from the repository's root, no leading slash).

    `*` and `?` match within one folder, `**` matches any number of folders, `{a,b}` matches either,
    `[ab]` one of the characters. A glob without a slash matches files of that name in any folder;
    one with a trailing slash matches all files below the folder. The time is at most proportional
    to the product of both lengths.
    """
    names = path.split("/")
    return any(_fits(pattern, names) for pattern in _patterns(glob))


_Pattern = tuple[re.Pattern[str] | None, ...]
"""A regular expression for each name of a path; None stands for any number of names."""


def _fits(pattern: _Pattern, names: list[str]) -> bool:
    # `reached` has the numbers of names that the pattern up to here can match: all alternatives
    # are followed at once, so that several `**` need no backtracking
    reached = {0}
    for each in pattern:
        if each is None:
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {n + 1 for n in reached if n < len(names) and each.fullmatch(names[n])}
        if not reached:
            return False
    return len(names) in reached


@cache
def _patterns(glob: str) -> tuple[_Pattern, ...]:
    return tuple(_glob_pattern(one) for one in _alternatives(glob.strip()))


def _alternatives(glob: str) -> list[str]:
    """Return the glob without braces: one glob for each combination of their alternatives."""
    todo: list[str] = [glob]
    done: list[str] = []
    while todo and len(todo) + len(done) <= MAX_ALTERNATIVES:
        one = todo.pop()
        found = re.search(r"\{([^{}]*)\}", one)
        if found is None:
            done.append(one)
        else:
            parts = found[1].split(",")
            todo += [one[: found.start()] + part + one[found.end() :] for part in parts]
    return done


def _glob_pattern(glob: str) -> _Pattern:
    glob = glob.removeprefix("./")
    glob += "**" if glob.endswith("/") else ""
    glob = glob.removeprefix("/") if "/" in glob else f"**/{glob}"
    parts = re.sub(r"(^|/)\*\*+(?=[^/*])", r"\1**/*", glob).split("/")
    if set(parts[-1]) == {"*"} and len(parts[-1]) > 1:
        parts[-1:] = ["**", "*"]
    return tuple(None if re.fullmatch(r"\*\*+", part) else _name(part) for part in parts)


def _name(glob: str) -> re.Pattern[str]:
    """Compile the pattern of one name.

    Each `*` but the last one matches as little as possible, in an atomic group that is never
    re-entered: if what follows it does not fit there, it fits nowhere else either. The match
    therefore needs no backtracking.
    """
    chunks = [""]
    for part in re.findall(r"\*+|\?|\[[^\[\]]+\]|[^*?\[]+|\[", glob):
        if part.startswith("*"):
            chunks.append("")
        elif part == "?":
            chunks[-1] += "."
        elif part.startswith("[") and len(part) > 1:
            chunks[-1] += _one_of(part[1:-1])
        else:
            chunks[-1] += re.escape(part)
    first, *middle = chunks
    last = f".*{middle.pop()}" if middle else ""
    between = "".join(f"(?>.*?{chunk})" for chunk in middle)
    return re.compile(f"{first}{between}{last}", re.DOTALL)


def _one_of(characters: str) -> str:
    negated = characters[0] in "!^" and len(characters) > 1
    inside = re.sub(r"[\\^\]\[&~|]", r"\\\g<0>", characters[1:] if negated else characters)
    inside = inside.replace("--", r"-\-")  # Python reserves `--` in a set for set difference
    try:
        re.compile(f"[{inside}]")
    except re.error:  # a range in reverse order, such as `z-a`
        inside = re.escape(characters)
    return f"[{'^' if negated else ''}{inside}]"


MAX_TEXT = 300_000

_NAMES = """
    ant apollo atom babel backbone beam bun celery chef cobra crystal cypress dart dash deno echo
    elixir elm ember express factor falcon fiber flask flutter gin go grails hive ink julia lit make
    mercury mint mongo nest next nim node oak parcel pig playwright pony prettier puppet rails rake
    react reason remix rocket rome rollup ruby rust salt sass scala scheme solid spark spring storm
    svelte swift tower vault vite vue zip
"""
PLAIN_WORDS = frozenset(_NAMES.split())
"""Names of tools that are also plain words: in lower case, they are weak evidence."""

_FOLLOWING = """
    a all an and ahead any as at away back by down each every for from her here his how if in into
    it its just me more my not now of off on only or our out over quickly so some sure that the
    their them then there these this those through to together too under up us use we well what
    when where which while why with without you your
"""
_SMALL_WORDS = frozenset(_FOLLOWING.split())
"""Words that often follow a verb at the beginning of a sentence, and rarely the name of a tool."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean letters, as a range of a character class.
"""

_A_LETTER = re.compile(rf"[^\W{_UNSPACED}]")
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+-]{0,20}://[^\s<>\"')\]]+", re.IGNORECASE)
_PERSON = re.compile(r"(?<![\w/.@])@[\w-]+(?![\w/])")
_SPAN = re.compile(r"`[^`]+`")
_SENTENCE_START = re.compile(r"(?:[.!?:;]\s+|[\n\r][\s>#*+\-\d.)\"'“(\[]*)[\"'“(\[*_#\s]*\Z")
_JOINED_BEFORE = re.compile(r"(?:\w[/.]|@)\Z")
_JOINED_AFTER = re.compile(r"[/@]\w|\.(?:[a-z]{1,5}\b|\d)")
_VERSION_AFTER = re.compile(r"\s+v?\d+(?:\.\d+)+|\s+v\d")
_NUMBER = re.compile(r"\s+v?\d")
_NEXT_WORD = re.compile(r"\s+([A-Za-z]+)")
_LOOK_BACK = 60


@dataclass(frozen=True)
class Text:
    """Represents a text with ignored parts replaced by spaces. `code`: offsets at which code spans
    begin and end, alternating."""

    text: str
    code: tuple[int, ...]

    def is_code(self, at: int) -> bool:
        """Return True if the character at that offset is in a code span."""
        return bisect.bisect_right(self.code, at) % 2 == 1


def prepare_text(text: str) -> Text:
    """Return the text prepared for matching with many triggers."""
    text = remove_quotations(text[:MAX_TEXT])
    for pattern in (_ADDRESS, _PERSON):
        text = pattern.sub(lambda found: " " * len(found[0]), text)
    return Text(text, tuple(_code_edges(text)))


def _code_edges(text: str) -> Iterator[int]:
    """Yield the offsets at which code spans begin and end, alternating."""
    at = 0
    for line in text.splitlines(keepends=True):
        for span in _SPAN.finditer(line):
            yield at + span.start()
            yield at + span.end()
        at += len(line)


def find_triggers(trigger: str, text: Text) -> str:
    """Return the first match of the trigger as the text spells it, or ""."""
    plain = _is_plain_word(trigger)
    for match in _as_words(trigger, text.text):
        if not plain or _is_technical(match, text):
            return " ".join(match[0].split())
    return ""


def _is_plain_word(trigger: str) -> bool:
    capitalised = re.fullmatch(r"[A-Z][a-z]+", trigger) is not None
    return capitalised or trigger.lower() in PLAIN_WORDS


def _as_words(trigger: str, text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of the trigger that have no letter next to them.

    The neighbouring letters are checked outside of the pattern: inside of it, they would make each
    trigger take 10 ms to compile.
    """
    at = 0
    while match := _pattern(trigger).search(text, at):
        start, end = match.span()
        within = (start and _A_LETTER.match(text, start - 1)) or _A_LETTER.match(text, end)
        at = start + 1 if within else end
        if not within:
            yield match


@cache
def _pattern(trigger: str) -> re.Pattern[str]:
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
    begin = max(0, match.start() - _LOOK_BACK)
    before = ("" if begin else "\n") + text.text[begin : match.start()]
    after = text.text[match.end() : match.end() + _LOOK_BACK]
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
