"""Truncates text, always with a note that says so and how to read the rest, and chooses markers
that delimit text written by others.
"""

import hashlib


def truncate_middle(text: str, limit: int, hint: str = "") -> str:
    """Return the text, with its middle left out if it is longer than `limit` characters.

    Head and tail get half of the limit each and are cut at a line end if one is near. The note
    between them says how much is missing, followed by `hint`, a sentence that says how to read it.
    The note is not counted in the limit.
    """
    if len(text) <= limit:
        return text
    head = text[: limit // 2]
    tail = text[len(text) - (limit - limit // 2) :]
    line_end = head.rfind("\n", len(head) * 3 // 4)
    head = head[: line_end + 1] if line_end >= 0 else head
    line_start = tail.find("\n", 0, len(tail) // 4)
    tail = tail[line_start + 1 :] if line_start >= 0 else tail
    missing = len(text) - len(head) - len(tail)
    note = f"[... {missing} characters left out. {hint}".rstrip() + " ...]"
    return f"{head.rstrip(chr(10))}\n{note}\n{tail.lstrip(chr(10))}"


def marker_for(text: str) -> str:
    """Return a word that does not occur in the text; the same text always gives the same word.

    Templates use it to delimit quoted text, which therefore can't contain its own end marker.
    """
    seed = text
    while (word := hashlib.sha256(seed.encode(errors="replace")).hexdigest()[:16]) in text.lower():
        seed += word
    return word
