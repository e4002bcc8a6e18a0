"""The answers of the index: values that the worker process sends to the host."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Definition:
    """The place of a definition. line: text of its first line."""

    id: str
    kind: str
    path: str
    start: int
    end: int
    line: str = ""


@dataclass(frozen=True)
class CodeExcerpt:
    """Lines of a file.

    within: id of the definition that they belong to, "" for none. left_out: number of further lines
    that were asked for.
    """

    path: str
    start: int
    lines: tuple[str, ...]
    within: str = ""
    left_out: int = 0


@dataclass(frozen=True)
class TermResult:
    """The search result for one term.

    how: "code" if the term names an entity or lines of a file, whose code is given; "file" if it
        names a file or a folder; "named" if there are definitions of that name, "similar" if there
        are definitions of a similar one; otherwise "words".
    more: number of definitions that were left out.
    passages: lines that contain the words of the term.
    """

    term: str
    how: Literal["code", "file", "named", "similar", "words"]
    definitions: tuple[Definition, ...] = ()
    more: int = 0
    code: CodeExcerpt | None = None
    passages: tuple[CodeExcerpt, ...] = ()


@dataclass(frozen=True)
class WalkRow:
    """One edge of a walk and the node that it leads to.

    level: number of edges from the start.
    guessed: True if the edge is based on the name alone.
    again: True if the node occurred before; its edges are not followed a second time.
    """

    level: int
    edge: str
    node: Definition
    guessed: bool
    again: bool


@dataclass(frozen=True)
class WalkResult:
    """The nodes that are reached from one start.

    node: the start; None if the index has no such entity.
    similar: ids that may have been meant.
    cut: True if rows were left out.
    """

    start: str
    direction: str = ""
    node: Definition | None = None
    rows: tuple[WalkRow, ...] = ()
    cut: bool = False
    similar: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuiltIndex:
    """The size of an index.

    left_out: source files that a limit left out, completely or in part. filtered: True if the
    process runs with a filter of system calls.
    """

    files: int
    entities: int
    left_out: int
    filtered: bool
