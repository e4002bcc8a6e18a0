"""Takes the tests of a change out of source files that hold their own unit tests, as in Rust.

Only the module of tests is taken: the code at the base commit with these tests shows whether they
fail without the change. https://doc.rust-lang.org/book/ch11-03-test-organization.html
"""

import re
from collections.abc import Sequence

MAX_SOURCE = 1_000_000
"""Maximum number of characters of a file that is read."""

_START = re.compile(r"^#\[cfg\(test\)\]\n(?:#\[[^\n]*\]\n)*(?:pub )?mod \w+ \{\n", re.MULTILINE)
_END = re.compile(r"^\}(?:\n|\Z)", re.MULTILINE)


def with_inline_tests(path: str, old: str, new: str) -> str | None:
    """Return the text `old` with the module of tests of `new`, or None if that can't be determined.

    Each text may have one such module, as rustfmt lays it out: its first and its last line begin at
    the margin. None too if the module is the same in both, or if nothing else differs.
    """
    if not path.endswith(".rs") or max(len(old), len(new)) > MAX_SOURCE:
        return None
    before, after = _modules(old), _modules(new)
    if len(before) > 1 or len(after) != 1:
        return None
    start, end = after[0]
    module = new[start:end]
    if not before:
        combined = f"{old.rstrip()}\n\n{module}"
    else:
        combined = old[: before[0][0]] + module + old[before[0][1] :]
    return None if combined in (old, new) else combined


def _modules(text: str) -> Sequence[tuple[int, int]]:
    """Return where the modules of tests begin and end."""
    places = []
    for match in _START.finditer(text):
        end = _END.search(text, match.end())
        if end is not None:
            places.append((match.start(), end.end()))
    return places
