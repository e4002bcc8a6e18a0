"""Decides whether a text asks for a skill. Triggers match whole words, never parts of words.

- A trigger of several words is a phrase; its words may be separated by any white space.
- A trigger in lower case ignores case; one with a capital is matched exactly (`CI`).
- A name that is also a plain English word (any capitalised word such as `React`, and the lower-case
  words of a list, such as `go` and `rust`) matches only in a technical form: in code, with a file
  ending, a path or a version (`react.js`, `go 1.22`), or capitalised where ordinary words are not.
- URLs and mentions of people (`@react`) are ignored, as is pasted text: code blocks, quotations,
  logs, version listings.
- Letters of scripts that don't separate words by spaces, or attach particles to them, count as
  word boundaries: `docker` matches in `dockerの設定`.
"""

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from resolver.memory.skills.quotations import remove_quotations

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
_VERSION = re.compile(r"\s+v?\d+(?:\.\d+)+|\s+v\d")
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
    if _JOINED_BEFORE.search(before) or _JOINED_AFTER.match(after) or _VERSION.match(after):
        return True
    if not re.fullmatch(r"[A-Z][a-z]*", match[0]):
        return False
    if _NUMBER.match(after):
        return True
    if _SENTENCE_START.search(before):
        following = _NEXT_WORD.match(after)
        return following is not None and following[1].lower() not in _SMALL_WORDS
    return True
