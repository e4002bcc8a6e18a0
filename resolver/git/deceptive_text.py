"""Finds characters in added lines that make code look different from what it is.

Bidirectional controls reorder the text that a reviewer sees, invisible characters hide in it, and
letters of other scripts look like Latin ones. Source: https://trojansource.codes,
https://www.unicode.org/reports/tr39/
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from resolver.git.git import HostGit
from resolver.git.tree import TreeChange, quote, read_blobs
from resolver.security.invisible_text import INVISIBLE

MAX_FOUND_PLACES = 200
"""Maximum number of places that are searched for in one change."""

_BIDI_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_INVISIBLE = re.compile(rf"(?![\x00-\x1f\u202a-\u202e\u2066-\u2069])[{INVISIBLE}]")
"""All but those that source code has and the bidi controls."""

_IN_EMOJI = re.compile("(?<=[\u00a9\u00ae\u2049-\u3299\ufe0f\U0001f000-\U0001faff])[\u200d\ufe0f]")
_IDENTIFIER = re.compile(r"\w{2,200}")
_LATIN = re.compile("[A-Za-z]")
_LOOKALIKES = re.compile(
    "[\u0391\u0392\u0395-\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03bd"
    "\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c-\u041e\u0420-\u0422\u0425\u0430\u0435\u043e"
    "\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d\uff21-\uff3a"
    "\uff41-\uff5a]"
)
_PROSE_SUFFIXES = (
    ".adoc", ".arb", ".markdown", ".md", ".po", ".pot", ".rst", ".srt", ".txt", ".vtt", ".xlf",
    ".xliff",
)  # fmt: skip


@dataclass(frozen=True)
class DeceptivePlace:
    """A character in an added line. Lines are counted from 1; 0 stands for the file's name.

    is_bidi_control: True if it reorders the text around it.
    is_code: False in a file of prose or of translations.
    """

    path: str
    line: int
    description: str
    is_bidi_control: bool
    is_code: bool

    def __str__(self) -> str:
        place = f"{self.path} line {self.line}" if self.line else f"the name of {self.path}"
        return f"{place}: {self.description}"


def find_deceptive_text(git: HostGit, changes: Iterable[TreeChange]) -> tuple[DeceptivePlace, ...]:
    """Return where the change adds deceptive characters, at most MAX_FOUND_PLACES of them."""
    changed = [change for change in changes if change.new_blob is not None]
    blobs = {blob for change in changed for blob in (change.old_blob, change.new_blob) if blob}
    # Of all lines, only those with such characters are kept in memory.
    suspects = {blob: dict(_suspect_lines(data)) for blob, data in read_blobs(git, blobs)}
    places = (place for change in changed for place in _places_of(change, suspects))
    return tuple(islice(places, MAX_FOUND_PLACES))


def _places_of(change: TreeChange, suspects: dict[str, dict[int, str]]) -> Iterator[DeceptivePlace]:
    path, name = quote(change.path), change.path.decode("utf-8", "replace")
    is_code = not name.lower().endswith(_PROSE_SUFFIXES)
    if change.status == "added":
        for description, is_bidi in _describe(name):
            yield DeceptivePlace(path, 0, description, is_bidi, is_code)
    before = Counter(suspects.get(change.old_blob or "", {}).values())
    for number, line in suspects.get(change.new_blob or "", {}).items():
        if before[line] > 0:
            before[line] -= 1
            continue
        for description, is_bidi in _describe(line):
            # Prose in many languages needs invisible characters.
            if is_code or is_bidi:
                yield DeceptivePlace(path, number, description, is_bidi, is_code)


def _suspect_lines(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a text that have such characters; none of a binary file."""
    if data.isascii() or b"\0" in data[:8000]:
        return
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.isascii():
            continue
        text = line.decode("utf-8", "replace")
        if number == 1:
            text = text.removeprefix("\ufeff")  # a byte order mark
        if next(_describe(text), None):
            yield number, text


def _describe(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each deceptive character of a line once, described, with True for a bidi control."""
    bidi = sorted(set(_BIDI_CONTROLS.findall(text)))
    invisible = sorted(set(_INVISIBLE.findall(_IN_EMOJI.sub("", text))))
    for character in [*bidi, *invisible]:
        name = unicodedata.name(character, "invisible character")
        yield f"U+{ord(character):04X} ({name.lower()})", character in bidi
    for match in _IDENTIFIER.finditer(text):
        lookalikes = sorted(set(_LOOKALIKES.findall(match[0])))
        if lookalikes and _LATIN.search(match[0]):
            codes = ", ".join(f"U+{ord(letter):04X}" for letter in lookalikes)
            yield f"{match[0][:60]} mixes Latin letters with similar ones ({codes})", False
