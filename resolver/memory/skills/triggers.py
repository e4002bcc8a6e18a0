"""Whether a text asks for a skill: its triggers matched as words, never as parts of words.

- A trigger of several words is a phrase; any blanks may stand between them.
- Written in lower case it matches any case; with a capital it is taken as it is spelt (`CI`).
- A name that is a plain English word as well (`React`, `go`, `rust`: any capitalised word, and
  lower-case ones of a list) matches its technical form only: in code, with a file ending, a path
  or a version (`react.js`, `go 1.22`), or capitalised where that is no matter of course.
- Addresses of pages and names of people (`@react`) don't count, nor does what was pasted: blocks of
  code, quotations, logs, listings of versions.
- Scripts that put no blanks between words, or hang particles on them, end a word: `docker` is in
  `dockerの設定`.
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
"""Names of tools that are words of a language too: in lower case they prove little."""

_FOLLOWING = """
    a all an and ahead any as at away back by down each every for from her here his how if in into
    it its just me more my not now of off on only or our out over quickly so some sure that the
    their them then there these this those through to together too under up us use we well what
    when where which while why with without you your
"""
_SMALL_WORDS = frozenset(_FOLLOWING.split())
"""What follows a verb at the beginning of a sentence, and rarely the name of a tool."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean letters."""

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
    """A text, with what does not count blanked out. `code`: where code begins and ends in it."""

    text: str
    code: tuple[int, ...]

    def is_code(self, at: int) -> bool:
        """Whether the character at that place stands in a code span."""
        return bisect.bisect_right(self.code, at) % 2 == 1


def prepare_text(text: str) -> Text:
    """The text, ready to be matched with many triggers."""
    text = remove_quotations(text[:MAX_TEXT])
    for pattern in (_ADDRESS, _PERSON):
        text = pattern.sub(lambda found: " " * len(found[0]), text)
    return Text(text, tuple(_code_edges(text)))


def _code_edges(text: str) -> Iterator[int]:
    """Where code spans begin and where they end, in turn."""
    at = 0
    for line in text.splitlines(keepends=True):
        for span in _SPAN.finditer(line):
            yield at + span.start()
            yield at + span.end()
        at += len(line)


def find_triggers(trigger: str, text: Text) -> str:
    """What of the text matches the trigger, as it is spelt there; "" when nothing does."""
    plain = _is_plain_word(trigger)
    for match in _as_words(trigger, text.text):
        if not plain or _is_technical(match, text):
            return " ".join(match[0].split())
    return ""


def _is_plain_word(trigger: str) -> bool:
    capitalised = re.fullmatch(r"[A-Z][a-z]+", trigger) is not None
    return capitalised or trigger.lower() in PLAIN_WORDS


def _as_words(trigger: str, text: str) -> Iterator[re.Match[str]]:
    """The trigger where no letter stands beside it.

    Letters are looked at beside the pattern: within it each trigger would take 10 ms to compile.
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
    """The trigger itself; signs at its own ends are a part of it (`c++`)."""
    words = r"\s+".join(re.escape(word) for word in trigger.split())
    before = "" if re.match(r"\w", trigger) else f"(?<!{re.escape(trigger[0])})"
    after = "" if re.search(r"\w\Z", trigger) else f"(?!{re.escape(trigger[-1])})"
    any_case = trigger == trigger.lower() or _is_plain_word(trigger)
    flags = re.IGNORECASE if any_case else re.NOFLAG
    return re.compile(f"{before}{words}{after}", flags)


def _is_technical(match: re.Match[str], text: Text) -> bool:
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
