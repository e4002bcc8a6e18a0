"""Replaces known secrets in events, texts and the operator's log. This is the second line of
defence: the first is that secrets are kept out of the sandbox's and the model's reach.

A secret is found as it is, in base64 at each of the three offsets, in hexadecimal, in the forms of
URLs and JSON, and in pieces of at least 16 characters of any of these. Colour codes and invisible
characters in between don't hide it. `formats.py` finds unknown credentials.

Secrets that are created during a run, such as GitHub installation tokens, are recognized by every
redactor that holds the same set from the moment they are issued.
"""

import base64
import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal, TypeVar, get_origin
from urllib.parse import quote, quote_plus

from pydantic import BaseModel

from resolver.security.formats import find_credentials
from resolver.security.invisible_text import INVISIBLE, TERMINAL_SEQUENCE

KEPT_AFTER_EXPIRY = timedelta(hours=1)
"""Time for which an expired secret is still redacted: a log may quote it late."""


class IssuedTokens:
    """A growing set of secrets that is safe for use by several threads.

    values: the current secrets. The object stays the same until the next `add`, so that callers
    can detect changes by identity.
    """

    def __init__(self) -> None:
        self.values: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self._expiry: dict[str, datetime | None] = {}

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
            self.values = tuple(self._expiry)


MARK = "[redacted]"
"""Text that replaces a secret."""

MIN_SECRET_CHARACTERS = 6
"""Minimum length of a secret in characters. Shorter ones are ignored: ordinary words contain them.
"""

MIN_PIECE_CHARACTERS = 16
"""Minimum length of a piece of a secret that is redacted too, in characters."""

MAX_DEPTH = 100
"""Maximum nesting depth of a value. Deeper values can't be searched, so they are replaced whole."""

_BLOCK = MIN_PIECE_CHARACTERS // 2
_MAX_POSITIONS = 8
"""Maximum positions that are tried for each block of a form. Only a repetitive secret has more."""

_HIDING = re.compile(f"{TERMINAL_SEQUENCE}|[{INVISIBLE}]")

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
        self._index = _SearchIndex(self._secrets, self._issued_tokens.values)

    def __call__(self, model: M) -> M:
        """Return the event, or other model, without secrets; the same object if it has none."""
        redacted: M = self._value(model, 0)
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
        index = self._index  # another thread may replace it at any time
        if self._issued_tokens.values is not index.issued:
            index = self._index = _SearchIndex(self._secrets, self._issued_tokens.values)
        spans = list(index.spans(text))
        # Most texts are plain, and the expression is slow.
        is_plain = text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()
        if not is_plain and _HIDING.search(text):
            positions: list[int] = []  # of the characters that are shown
            end = 0
            for match in _HIDING.finditer(text):
                positions += range(end, match.start())
                end = match.end()
            positions += range(end, len(text))
            shown = index.spans(_HIDING.sub("", text))
            spans += [(positions[start], positions[end - 1] + 1) for start, end in shown]
        return spans

    def _value(self, value: Any, depth: int) -> Any:
        """Return the value without secrets; the same object if it contains none."""
        # The exact type: an enum member is a str too, but its value is one of our own constants.
        if type(value) is str:
            return _replace_spans(value, self._spans(value))
        if not isinstance(value, BaseModel | dict | list | tuple):
            return value
        if depth > MAX_DEPTH:
            return MARK
        if isinstance(value, BaseModel):
            fields = {**value.__dict__, **(value.__pydantic_extra__ or {})}
            redacted = {
                name: self._value(field, depth + 1)
                for name, field in fields.items()
                if name not in _constant_fields(type(value))
            }
            changed = {name: new for name, new in redacted.items() if new is not fields[name]}
            return value.model_copy(update=changed) if changed else value
        items = (
            [item for pair in value.items() for item in pair] if isinstance(value, dict) else value
        )
        new_items = [self._value(item, depth + 1) for item in items]
        if all(new is item for new, item in zip(new_items, items, strict=True)):
            return value
        if isinstance(value, dict):
            return dict(zip(new_items[::2], new_items[1::2], strict=True))
        return type(value)(new_items)


class _SearchIndex:
    """Finds pieces of secrets in time linear in the length of the text.

    Divide the text into blocks of n characters, at positions 0, n, 2n, ... Any piece of at least 2n
    characters contains one of these blocks completely, wherever it begins. So it is enough to look
    up each block of the text in an index of all positions of the forms, and to extend each hit to
    both sides. Forms that are shorter than such a piece are searched for whole.

    issued: the issued secrets that the index includes.
    """

    def __init__(self, secrets: Iterable[str], issued: tuple[str, ...]) -> None:
        self.issued = issued
        parts = {part for secret in (*secrets, *issued) for part in _parts(secret)}
        forms = sorted({form for part in parts for form in _forms(part)})
        self._short = [re.compile(re.escape(form)) for form in forms if len(form) < 2 * _BLOCK]
        self._places: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for form in forms:
            counts: Counter[str] = Counter()
            for start in range(len(form) - _BLOCK + 1 if len(form) >= 2 * _BLOCK else 0):
                block = form[start : start + _BLOCK]
                counts[block] += 1
                if counts[block] <= _MAX_POSITIONS:
                    self._places[block].append((form, start))

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the spans of the text that agree with a short form, or with a piece of a form."""
        for pattern in self._short:
            yield from (match.span() for match in pattern.finditer(text))
        blocks = range(0, len(text) - _BLOCK + 1, _BLOCK)
        end = 0
        for at in [at for at in blocks if text[at : at + _BLOCK] in self._places]:
            if at + _BLOCK <= end:
                continue
            for form, place in self._places[text[at : at + _BLOCK]]:
                start = at - _agreement(text[max(0, at - place) : at][::-1], form[:place][::-1])
                stop = at + _agreement(text[at : at + len(form) - place], form[place:])
                if stop - start >= 2 * _BLOCK:
                    yield start, stop
                    end = max(end, stop)


def _agreement(first: str, second: str) -> int:
    """Return the number of characters at the beginning in which the texts agree."""
    pairs = enumerate(zip(first, second, strict=False))
    differing = (index for index, (one, other) in pairs if one != other)
    return next(differing, min(len(first), len(second)))


def _parts(secret: str) -> Iterator[str]:
    """Yield the parts of a secret that are secret: all of it, or the body lines of a PEM key."""
    for line in secret.split("\n") if "-----BEGIN" in secret else [secret]:
        part = line.strip()
        if len(part) >= MIN_SECRET_CHARACTERS and not part.startswith("-----"):
            yield part


def _forms(part: str) -> Iterator[str]:
    """Yield `part` as it is, in JSON, in URLs, in hexadecimal, and in base64 at each of the three
    offsets.

    base64 encodes groups of three bytes, so the text of a secret depends on its position in the
    encoded data. The first and last characters are left out: they contain bits of the neighbouring
    bytes. https://www.rfc-editor.org/rfc/rfc4648#section-4
    """
    data = part.encode("utf-8", "surrogatepass")
    yield from (part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1])
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield from (quoted, re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quoted))
    yield from (data.hex(), data.hex().upper())
    for offset in range(3):
        first, last = (offset * 8 + 5) // 6, (offset + len(data)) * 8 // 6
        encoded = base64.b64encode(bytes(offset) + data + bytes(2)).decode()[first:last]
        yield from (encoded, encoded.translate(str.maketrans("+/", "-_")))


_ESCAPE = re.compile(r'\\+(?:u[0-9a-fA-F]{4}|["/bfnrt])?')


def _replace_spans(text: str, spans: list[Span]) -> str:
    """Return the text with each span replaced. Spans that overlap or touch are replaced as one.

    An escape sequence at the edge of a span stays, so that JSON stays JSON, also inside of JSON.
    """
    merged: list[Span] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], stop)
        else:
            merged.append((start, stop))
    parts, position = [], 0
    for start, stop in merged:
        first, last = start, stop
        while first > position and text[first - 1] == "\\":
            first -= 1
        while last > start and text[last - 1] == "\\":
            last -= 1
        escape = _ESCAPE.match(text, first, stop)
        begin = max(start, escape.end() if escape else 0)
        if begin >= last:  # of nothing but escape sequences
            begin, last = start, stop
        parts += [text[position:begin], MARK]
        position = last
    return "".join((*parts, text[position:]))


@cache
def _constant_fields(model: type[BaseModel]) -> frozenset[str]:
    """Return the fields that hold one of a fixed set of constants, such as `kind`. They are left
    alone, because the log is parsed by them."""
    fields = model.model_fields.items()
    literals = {name for name, field in fields if get_origin(field.annotation) is Literal}
    return frozenset(literals | {"kind"})
