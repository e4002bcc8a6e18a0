"""Repetitions of any piece of syntax are parsed in time linear in their length, or cut off."""

import time

import pytest

from tests.fuzz.target import TARGETS, FuzzTarget
from tests.fuzz.targets import close_resources
from tests.github.test_text_growth import REPEATED

SIZE = 65_536
"""GitHub's limit for a comment, in characters."""

MAX_SECONDS = 20.0
"""For all calls of a target. A pattern that reads the rest of the text from each of its places
takes 30 and more for one call."""

PIECES = (
    b" ", b"\n", b"a\n\n", b"a ", b"a.", b"(", b"[", b"{", b"'", b'"', b"\\", b"<", b"&", b"- ",
    b"`", b"\x00", b"a: b\n", b"a=b\n", b"a(", b"a, ", b"9",
)  # fmt: skip

MARKDOWN = ("mention", "pull_request_template", "tag_reply")
"""Parsers of markdown that `test_text_growth` does not try with all its pieces."""

NAMES = [
    name
    for name, target in TARGETS.items()
    if target.seeds and name != "git_bundle" and not name.endswith("_answer")
]


def pieces_of(target: FuzzTarget) -> list[bytes]:
    more = [piece.encode() for piece in REPEATED] if target.name in MARKDOWN else []
    return list(dict.fromkeys([*target.tokens, *PIECES, *more]))


@pytest.mark.attack
@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NAMES)
def test_repetitions_take_linear_time(name: str) -> None:
    """Any input repeats one piece: the time of each parser grows linearly with it."""
    target = TARGETS[name]
    seed = target.seeds[0]
    # Two inputs in one are separated by NUL: the second one is made of repetitions then.
    head = seed[: seed.index(b"\0") + 1] if b"\0" in seed[:3_000] else b""
    slow = {}
    for piece in pieces_of(target):
        data = head + (piece * (SIZE // len(piece) + 1))[:SIZE]
        began = time.process_time()
        target.run(data)
        seconds = time.process_time() - began
        if seconds > MAX_SECONDS:
            slow[piece] = seconds
    close_resources()
    assert not slow
