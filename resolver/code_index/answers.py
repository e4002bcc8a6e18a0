"""The answers of the index, as the worker process sends them to the host."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DefinitionItem:
    """A definition, a file or a directory. line: text of the first line of a definition."""

    kind: str
    id: str
    start: int
    end: int
    line: str | None


@dataclass(frozen=True)
class CodeExcerpt:
    """Lines of a file.

    within: id of the definition that they belong to, None for none. left_out: number of further
    lines that were asked for.
    """

    path: str
    within: str | None
    start: int
    lines: list[str]
    left_out: int


@dataclass(frozen=True)
class TermResult:
    """The search result for one term.

    how: "code" if the term names a definition or lines of a file; "file" if it names a file or a
        folder; "named" if there are definitions of that name, "similar" if there are definitions of
        a similar one; otherwise "words".
    more: number of definitions that were left out.
    excerpts: the code that the term names, or lines that contain the words of the term.
    """

    term: str
    how: Literal["code", "file", "named", "similar", "words"]
    definitions: list[DefinitionItem]
    more: int
    excerpts: list[CodeExcerpt]


@dataclass(frozen=True)
class WalkStep:
    """One edge of a walk and the node that it leads to.

    level: number of edges from the start. guessed: True if the edge is based on the name alone.
    again: True if the node occurred before; its edges are not followed a second time.
    """

    level: int
    edge: str
    node: DefinitionItem
    guessed: bool
    again: bool


@dataclass(frozen=True)
class WalkResult:
    """The nodes that are reached from one start.

    node: the start; None if the index has no such entity. similar: ids that may have been meant.
    cut: True if steps were left out.
    """

    start: str
    direction: str
    node: DefinitionItem | None
    steps: list[WalkStep]
    cut: bool
    similar: list[str]
