"""What the index answers: data that goes from the child process to the host."""

import struct
from dataclasses import dataclass
from typing import Literal

MARK = struct.Struct("<Q")
"""How the child writes down which file it is reading, counted from 1; 0 is none."""


@dataclass(frozen=True)
class Definition:
    """Where something is defined. line: its first line's text."""

    id: str
    kind: str
    path: str
    start: int
    end: int
    line: str = ""


@dataclass(frozen=True)
class CodeExcerpt:
    """Lines of a file. within: the definition they belong to, "" for none. left_out: further
    lines that were asked for."""

    path: str
    start: int
    lines: tuple[str, ...]
    within: str = ""
    left_out: int = 0


@dataclass(frozen=True)
class TermFound:
    """What was found for one term.

    how: the term names an entity or lines of a file, whose code is given ("code"); a file
    ("file"); definitions of that name ("named") or a similar one ("similar"); else nothing is
    named so ("words"). more: definitions that were left out. passages: where the words stand.
    """

    term: str
    how: Literal["code", "file", "named", "similar", "words"]
    definitions: tuple[Definition, ...] = ()
    more: int = 0
    code: CodeExcerpt | None = None
    passages: tuple[CodeExcerpt, ...] = ()


@dataclass(frozen=True)
class WalkRow:
    """One edge of a walk and the node behind it.

    level: edges from the start. guessed: the name alone says so. again: the node is above already
    and is not unfolded a second time.
    """

    level: int
    edge: str
    node: Definition
    guessed: bool
    again: bool


@dataclass(frozen=True)
class WalkResult:
    """What is reached from one start; None when the index has no such entity.

    similar: ids that may have been meant. cut: rows were left out.
    """

    start: str
    direction: str = ""
    node: Definition | None = None
    rows: tuple[WalkRow, ...] = ()
    cut: bool = False
    similar: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuiltIndex:
    """The size of an index. left_out: sources that a bound kept out, whole or in part. filtered:
    its process can do nothing any more but count."""

    files: int
    entities: int
    left_out: int
    filtered: bool
