"""Replaces known secrets in events, texts and the operator's log. This is the second line of
defence: the first is that secrets are kept out of the sandbox's and the model's reach.

A secret is found as it is, in base64 at each of the three offsets, in hexadecimal,
percent-encoded, JSON-escaped, and in pieces of at least 16 characters of any of these. Colour codes
and invisible characters in between don't hide it. `formats.py` finds unknown credentials.

Secrets that are created during a run, such as GitHub installation tokens, are recognized by every
redactor that holds the same set from the moment they are issued.
"""

import base64
import json
import logging
import re
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import cache
from itertools import accumulate
from typing import Any, Literal, NamedTuple, TypeVar, get_origin
from urllib.parse import quote, quote_plus

from pydantic import BaseModel

from resolver.events.log import Event
from resolver.security.formats import find_credentials

KEPT_AFTER_EXPIRY = timedelta(hours=1)
"""Time for which an expired secret is still redacted: a log may quote it late."""


class IssuedTokens:
    """A growing set of secrets that is safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._expiry: dict[str, datetime | None] = {}
        self._values: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """The current secrets. The object stays the same until the next `add`, so that callers can
        detect changes by identity."""
        return self._values

    def add(self, secret: str, expires_at: datetime | None, now: datetime) -> None:
        """Add a secret, and drop those that expired long before `now`. expires_at: None for
        never."""
        with self._lock:
            remaining = {
                value: expiry
                for value, expiry in self._expiry.items()
                if expiry is None or now < expiry + KEPT_AFTER_EXPIRY
            }
            self._expiry = {**remaining, secret: expires_at}
            self._values = tuple(self._expiry)


MARK = "[redacted]"
"""Text that replaces a secret."""

MIN_SECRET_CHARACTERS = 6
"""Minimum length of a secret in characters. Shorter ones are ignored: ordinary words contain them.
"""

MIN_PIECE_CHARACTERS = 16
"""Minimum length, in characters of the secret, of a piece of a secret that is redacted too."""

MAX_DEPTH = 100
"""Maximum nesting depth of a value. Deeper values can't be searched, so they are replaced whole."""

_MAX_POSITIONS = 8
"""Maximum positions that are tried for each block of a form. Only a repetitive secret has more."""

_INVISIBLE = re.compile(
    r"\x1b\][^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC: titles, links
    r"|\x1b[PX^_][^\x1b\x9c\n]{0,4096}(?:\x1b\\|\x9c)"
    # DCS, SOS, PM, APC: other control strings (ECMA-48, section 5.6)
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    r"\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0"
    r"\ufff0-\ufffb\U000e0000-\U000e0fff]"
)

Span = tuple[int, int]
M = TypeVar("M", bound=BaseModel)


class Redactor:
    """Replaces secrets by `[redacted]`. Instances can be passed to `EventStream(redact=...)`.

    secrets: the complete values. Those shorter than 6 characters are ignored. Of a PEM key, the
        lines of the body are the secret, not the BEGIN and END lines.
    issued_tokens: further secrets, whose number may grow at any time.

    A piece shorter than 16 characters is not found, so a secret that is split more finely, reversed
    or encrypted is not redacted. What must not leak must therefore not be within reach at all.
    """

    def __init__(self, secrets: Iterable[str], issued_tokens: IssuedTokens | None = None) -> None:
        self._secrets = tuple(secrets)
        self._issued_tokens = issued_tokens or IssuedTokens()
        self._search_index = self._build_index(self._issued_tokens.values)

    def _build_index(self, issued: tuple[str, ...]) -> "_SearchIndex":
        """Build the index of the given secrets and of `issued`."""
        literals: set[str] = set()
        by_block: dict[int, set[str]] = defaultdict(set)
        for piece in {part for secret in (*self._secrets, *issued) for part in _parts(secret)}:
            for width, form in _forms(piece):
                block = MIN_PIECE_CHARACTERS // 2 * width
                if len(form) < 2 * block:
                    literals.add(form)
                else:
                    by_block[block].add(form)
        indexes = [_BlockIndex(block, sorted(forms)) for block, forms in by_block.items()]
        return _SearchIndex(issued, sorted(literals), indexes)

    def __call__(self, event: Event) -> Event:
        """Return the event without secrets; the same object if it contains none."""
        redacted: Event = self._model(event, 0)
        return redacted

    def redact_model(self, model: M) -> M:
        """Return the model without secrets; the same object if it contains none."""
        redacted: M = self._model(model, 0)
        return redacted

    def redact_text(self, text: str) -> str:
        """Return the text without secrets and without anything that has a credential's format.

        Meant for comments, logs and error messages, which may quote credentials that are not known.
        """
        spans = self._spans(text)
        spans += [(credential.start, credential.end) for credential in find_credentials(text)]
        return _replace_spans(text, spans)

    def holds_secret(self, text: str) -> bool:
        """Return True if the text contains one of the secrets in any of the encodings."""
        return bool(self._spans(text))

    def _spans(self, text: str) -> list[Span]:
        if not _INVISIBLE.search(text):
            return self._visible_spans(text)
        visible, origin = _strip_invisible(text)
        visible_spans = [
            (origin(start), origin(end - 1) + 1) for start, end in self._visible_spans(visible)
        ]
        return self._visible_spans(text) + visible_spans

    def _visible_spans(self, text: str) -> list[Span]:
        issued = self._issued_tokens.values
        search_index = self._search_index  # another thread may replace it at any time
        # compared by identity: `values` is a new object after each change
        if issued is not search_index.issued:
            search_index = self._search_index = self._build_index(issued)
        spans = [span for literal in search_index.literals for span in _find_literal(text, literal)]
        for index in search_index.indexes:
            spans += index.spans(text)
        return spans

    def _value(self, value: Any, depth: int) -> Any:
        # The exact type: an enum member is a str too, but its value is one of our own constants.
        if type(value) is str:
            return _replace_spans(value, self._spans(value))
        if not isinstance(value, BaseModel | dict | list | tuple):
            return value
        if depth > MAX_DEPTH:
            return MARK
        if isinstance(value, BaseModel):
            return self._model(value, depth)
        if isinstance(value, dict):
            return self._dict(value, depth)
        return self._sequence(value, depth)

    def _model(self, model: BaseModel, depth: int) -> Any:
        changed = {}
        constant_fields = _constant_fields(type(model))
        for name, value in (*model.__dict__.items(), *(model.__pydantic_extra__ or {}).items()):
            if name not in constant_fields:
                new_value = self._value(value, depth + 1)
                if new_value is not value:
                    changed[name] = new_value
        return model.model_copy(update=changed) if changed else model

    def _dict(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        redacted = {}
        is_unchanged = True
        for key, item in value.items():
            new_key, new_item = self._value(key, depth + 1), self._value(item, depth + 1)
            is_unchanged = is_unchanged and new_key is key and new_item is item
            redacted[new_key] = new_item
        return value if is_unchanged else redacted

    def _sequence(self, value: Any, depth: int) -> Any:
        redacted = []
        is_unchanged = True
        for item in value:
            new_item = self._value(item, depth + 1)
            is_unchanged = is_unchanged and new_item is item
            redacted.append(new_item)
        return value if is_unchanged else type(value)(redacted)


class _SearchIndex(NamedTuple):
    """Holds everything that is searched for. issued: the issued secrets that it includes."""

    issued: tuple[str, ...]
    literals: list[str]
    indexes: "list[_BlockIndex]"


class _BlockIndex:
    """Finds pieces of the given forms in time linear in the length of the text.

    Divide the text into blocks of n characters, at positions 0, n, 2n, ... Any piece of at least 2n
    characters contains one of these blocks completely, wherever it begins. So it is enough to look
    up each block of the text in an index of all positions of the forms, and to extend each hit to
    both sides.
    """

    def __init__(self, block: int, forms: Iterable[str]) -> None:
        self._block = block
        self._positions: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for form in forms:
            counts: dict[str, int] = defaultdict(int)
            for start in range(len(form) - block + 1):
                block_text = form[start : start + block]
                counts[block_text] += 1
                if counts[block_text] <= _MAX_POSITIONS:
                    self._positions[block_text].append((form, start))

    def spans(self, text: str) -> list[Span]:
        """Return the spans of the text that agree with a form over at least two blocks."""
        block, positions = self._block, self._positions
        hits = [
            start
            for start in range(0, len(text) - block + 1, block)
            if text[start : start + block] in positions
        ]
        spans: list[Span] = []
        end = 0
        for start in hits:
            if start + block <= end:
                continue
            candidates = positions[text[start : start + block]]
            extended = [
                _extend_match(text, start, form, place, block) for form, place in candidates
            ]
            long_enough = [span for span in extended if span[1] - span[0] >= 2 * block]
            spans += long_enough
            end = max((span[1] for span in long_enough), default=end)
        return spans


def _extend_match(text: str, start: int, form: str, form_position: int, block: int) -> Span:
    """Return the longest span around `start` that agrees with `form` around `form_position`."""
    left = 0
    while (
        left < start
        and left < form_position
        and text[start - left - 1] == form[form_position - left - 1]
    ):
        left += 1
    right = block
    max_right = min(len(text) - start, len(form) - form_position)
    while right < max_right and text[start + right] == form[form_position + right]:
        right += 1
    return start - left, start + right


def _parts(secret: str) -> Iterator[str]:
    """Yield the parts of a secret that are secret: all of it, or the body lines of a PEM key."""
    lines = secret.split("\n") if "-----BEGIN" in secret else [secret]
    for line in lines:
        part = line.strip()
        if len(part) >= MIN_SECRET_CHARACTERS and not part.startswith("-----"):
            yield part


def _forms(part: str) -> Iterator[tuple[int, str]]:
    """Yield the encodings of `part`, each with the number of characters that it needs per character
    of the secret."""
    data = part.encode("utf-8", "surrogatepass")
    escaped = [json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1]]
    quoted = [quote(data, safe=""), quote(data), quote_plus(data)]
    lower = [re.sub("%[0-9A-F]{2}", lambda m: m[0].lower(), text) for text in quoted]
    for form in {part, *escaped, *quoted, *lower, *_base64_forms(data)}:
        yield 1, form
    for digits in (data.hex(), data.hex().upper()):
        yield 2, digits
        yield 3, "%" + "%".join(digits[at : at + 2] for at in range(0, len(digits), 2))
    units = part.encode("utf-16-be", "surrogatepass").hex("-", 2).split("-")
    for words in (units, [unit.upper() for unit in units]):
        yield 6, "\\u" + "\\u".join(words)


def _base64_forms(data: bytes) -> Iterator[str]:
    """Yield the base64 text of `data` for each of the three offsets at which it can begin.

    base64 encodes groups of three bytes, so the text of a secret depends on its position in the
    encoded data. The first and last characters are left out: they contain bits of the neighbouring
    bytes. https://www.rfc-editor.org/rfc/rfc4648#section-4
    """
    for offset in range(3):
        first = (offset * 8 + 5) // 6
        last = (offset + len(data)) * 8 // 6
        padded = bytes(offset) + data + bytes(2)
        yield base64.b64encode(padded).decode()[first:last]
        yield base64.urlsafe_b64encode(padded).decode()[first:last]


def _find_literal(text: str, literal: str) -> Iterator[Span]:
    start = text.find(literal)
    while start >= 0:
        yield start, start + len(literal)
        start = text.find(literal, start + len(literal))


def _strip_invisible(text: str) -> tuple[str, Any]:
    """Return the text without characters that a terminal or page does not show, and a function that
    maps a position in it to the position in the original text."""
    parts: list[str] = []
    starts: list[int] = []
    position = 0
    for match in _INVISIBLE.finditer(text):
        if match.start() > position:
            parts.append(text[position : match.start()])
            starts.append(position)
        position = match.end()
    if position < len(text):
        parts.append(text[position:])
        starts.append(position)
    visible_starts = list(accumulate((len(part) for part in parts), initial=0))

    def origin(visible_position: int) -> int:
        index = bisect_right(visible_starts, visible_position) - 1
        return starts[index] + visible_position - visible_starts[index]

    return "".join(parts), origin


def _replace_spans(text: str, spans: list[Span]) -> str:
    """Return the text with each span replaced. Spans that overlap or touch are replaced as one."""
    if not spans:
        return text
    parts = []
    position = 0
    end = -1
    for start, stop in sorted(spans):
        if start > end:
            # A backslash before the span may have escaped its first character. It is removed:
            # in JSON text, the escape `\[` would be invalid.
            parts += [text[position:start].rstrip("\\"), MARK]
        end = max(end, stop)
        position = end
    return "".join((*parts, text[position:]))


@cache
def _constant_fields(model: type[BaseModel]) -> frozenset[str]:
    """Return the fields that hold one of a fixed set of constants, such as `kind`. They are left
    alone, because the log is parsed by them."""
    literals = {
        name
        for name, field in model.model_fields.items()
        if get_origin(field.annotation) is Literal
    }
    return frozenset(literals | {"kind"})


_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
_FORMATTER = logging.Formatter()


class RewritingFilter(logging.Filter):
    """Passes every text of a log record through `rewrite`: message, traceback, stack, extras.

    rewrite: usually `Redactor.redact_text`, optionally followed by escaping for the log's reader.

    Add the filter to handlers. A filter on a logger does not see the records of its child loggers:
    https://docs.python.org/3/library/logging.html#filter-objects
    """

    def __init__(self, rewrite: Callable[[str], str]) -> None:
        super().__init__()
        self._rewrite = rewrite

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record in place and return True."""
        record.msg = self._rewrite(_message(record))
        record.args = None
        if record.exc_info and not record.exc_text:
            record.exc_text = _FORMATTER.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._rewrite(record.exc_text)
        # A handler that formats the exception again would restore the original text.
        record.exc_info = None
        if record.stack_info:
            record.stack_info = self._rewrite(record.stack_info)
        for name, value in list(vars(record).items()):
            if name not in _STANDARD and not isinstance(value, int | float | None):
                setattr(record, name, self._rewrite(str(value)))
        return True


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # The arguments don't match the format string: the record is still worth keeping.
        return f"{record.msg} {record.args}"
