"""What the index knows and answers: the facts about one file as the worker process sends them, and
the answers to a search and to a walk over the graph."""

from dataclasses import dataclass
from typing import Literal, NamedTuple


class Definition(NamedTuple):
    """A definition in a file. name: qualified within the file. start, end: lines, from 1."""

    name: str
    kind: str
    start: int
    end: int


class SourceReference(NamedTuple):
    """A reference to `name`. within: index of the innermost definition around it, -1 for none.
    kind: calls or inherits."""

    within: int
    name: str
    kind: str


class SourceFile(NamedTuple):
    """The facts about one file. complete: False if a limit left out part of it."""

    definitions: tuple[Definition, ...] = ()
    references: tuple[SourceReference, ...] = ()
    complete: bool = True


@dataclass(frozen=True)
class Entity:
    """A definition, a file or a directory.

    id: the path, or path::Name. name: qualified within the file, None for a file and a directory.
    start, end: first and last line, from 1. line: text of the first line of a definition.
    """

    id: str
    path: str
    name: str | None
    kind: str
    start: int = 1
    end: int = 1
    line: str | None = None

    @property
    def short_name(self) -> str:
        """The unqualified name."""
        return (self.name or "").rpartition(".")[2]


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
    definitions: list[Entity]
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
    node: Entity
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
    node: Entity | None
    steps: list[WalkStep]
    cut: bool
    similar: list[str]
