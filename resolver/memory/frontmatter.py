"""Reads Markdown files with YAML frontmatter between two `---` lines: skills and agent definitions.

The YAML is restricted to plain data: mappings with text keys, lists, text, numbers, true, false,
null. Anchors and tags are refused, and the YAML 1.1 meanings of words (`on`, `no`) and dates do not
apply. Whatever its bytes are, a file gives its fields or a FrontmatterError.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from resolver.errors import FrontmatterError

MAX_FRONTMATTER_LENGTH = 16_000
"""Maximum characters of the frontmatter, without its two `---` lines."""

MAX_DEPTH = 12
"""Maximum nesting depth of lists and mappings."""

FENCE = "---"

_UNQUOTED_VALUE = re.compile(r"\s*(?:(?:- +)*[\w-]+:|-) +(?![\s\"'|>])(.+)")
_NEEDS_QUOTES = re.compile(r"[*&@`%!\[{]|.*:(\s|$)")
_NULL = re.compile(r"|~|null|Null|NULL")
_BOOLEAN = re.compile(r"true|True|TRUE|false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,2})?")

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Document:
    """Represents a parsed file. `fields` is empty if the file has no frontmatter.

    lines: line number in the file (from 1) of each field, by the field's dotted path (`name`,
        `inputs.0.name`).
    """

    path: str
    fields: Mapping[str, Any]
    body: str
    lines: Mapping[str, int]


def read_document(text: str, path: str) -> Document:
    """Split a file into the fields of its frontmatter and its body.

    text: the whole file. A byte order mark, Windows line endings and leading empty lines are
        accepted. A file that does not begin with a `---` line has no frontmatter.
    path: used in error messages.

    Raises FrontmatterError if the frontmatter has no closing line, is not plain YAML or not a
    mapping, has a duplicate field, or is too large.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    opening = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if lines[opening].rstrip() != FENCE:
        return Document(path, {}, "\n".join(lines).strip("\n"), {})
    first_line = opening + 1
    closing = next(
        (
            index
            for index, line in enumerate(lines[first_line:], first_line)
            if line.rstrip() == FENCE
        ),
        None,
    )
    if closing is None:
        raise FrontmatterError(
            path, first_line, "the front matter that begins here has no closing `---` line"
        )
    frontmatter = "\n".join(lines[first_line:closing])
    if len(frontmatter) > MAX_FRONTMATTER_LENGTH:
        raise FrontmatterError(
            path, first_line, f"the front matter has more than {MAX_FRONTMATTER_LENGTH} characters"
        )
    reader = _FrontmatterReader(path, first_line + 1)
    fields = reader.fields(frontmatter)
    return Document(path, fields, "\n".join(lines[closing + 1 :]).strip("\n"), reader.lines)


def validate_document(document: Document, model: type[M]) -> M:
    """Return the fields as an instance of `model`.

    Raises FrontmatterError with the line of the first invalid field. A missing field is reported at
    the mapping that should contain it.
    """
    try:
        return model.model_validate(dict(document.fields))
    except ValidationError as error:
        first_error, *other_errors = error.errors(include_url=False)
        field = ".".join(str(part) for part in first_error["loc"])
        what = _TYPE_MESSAGES.get(
            first_error["type"], first_error["msg"].removeprefix("Value error, ")
        )
        suffix = f" (and {len(other_errors)} more)" if other_errors else ""
        message = f"`{field}`: {what}" if field else what
        raise FrontmatterError(
            document.path, _line_of(document, first_error["loc"]), f"{message}{suffix}"
        ) from error


_TYPE_MESSAGES = {
    "tuple_type": "this has to be a list",
    "list_type": "this has to be a list",
    "model_type": "this has to be a mapping of fields (`name: value`)",
    "dict_type": "this has to be a mapping of fields (`name: value`)",
}
"""Clearer messages for pydantic's error types: people who write YAML know lists, not tuples."""


def _line_of(document: Document, location: tuple[int | str, ...]) -> int:
    """Return the line of a field, of the nearest enclosing field, or else 1."""
    for length in range(len(location), 0, -1):
        line = document.lines.get(".".join(str(part) for part in location[:length]))
        if line is not None:
            return line
    return 1


class _Mark(Protocol):
    """A position in the frontmatter, lines counted from 0. PyYAML has two such classes, one of the
    parser in Python and one of the parser in C."""

    line: int


class _NotPlainError(Exception):
    """YAML that is not restricted to plain data."""

    def __init__(self, mark: _Mark, what: str) -> None:
        super().__init__(what)
        self.mark = mark
        self.what = what


class _PlainLoader(yaml.BaseLoader):
    """Builds a tree from plain data only. Raises _NotPlainError for anchors, aliases, tags and
    nesting that is too deep.

    Each event of the parser is checked before anything is built from it, so that a hostile file
    can't exhaust the memory.
    """

    def __init__(self, frontmatter: str) -> None:
        super().__init__(frontmatter)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the node that begins with the next event."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        is_collection = isinstance(event, yaml.CollectionStartEvent)
        if is_collection and self._depth == MAX_DEPTH:
            raise _NotPlainError(event.start_mark, "lists or mappings are nested too deeply")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            what = "anchors (`&name`, `*name`) are not supported here"
            raise _NotPlainError(event.start_mark, what)
        if getattr(event, "tag", None) not in (None, "!"):
            raise _NotPlainError(event.start_mark, "tags (`!name`) are not supported here")
        self._depth += is_collection
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= is_collection
        return node


class _FrontmatterReader:
    """Parses one frontmatter block and fills `lines` while doing so.

    first_line: line number in the file of the block's first line.
    """

    def __init__(self, path: str, first_line: int) -> None:
        self._path = path
        self._first_line = first_line
        self.lines: dict[str, int] = {}

    def fields(self, frontmatter: str) -> dict[str, Any]:
        """Parse the frontmatter into a mapping."""
        try:
            node = self._compose(frontmatter)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = error.problem or error.context or "can't be read"
            raise self._error(
                mark, f"this is not valid YAML: {what}{_hint(frontmatter, mark)}"
            ) from error
        except yaml.reader.ReaderError as error:
            line = frontmatter.count("\n", 0, int(error.position)) + self._first_line
            raise FrontmatterError(self._path, line, "a character that YAML forbids") from error
        except (ValueError, OverflowError) as error:  # an escape beyond the last code point
            raise FrontmatterError(
                self._path, self._first_line, f"this is not valid YAML: {error}"
            ) from error
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise self._error(
                node.start_mark, "the front matter is not a mapping of fields (`name: value`)"
            )
        return dict(self._pairs(node, ""))

    def _compose(self, frontmatter: str) -> yaml.Node | None:
        """Return the tree of the frontmatter, None if it is empty."""
        loader = _PlainLoader(frontmatter)
        try:
            node: yaml.Node | None = loader.get_single_node()
        except _NotPlainError as error:
            raise self._error(error.mark, error.what) from None
        finally:
            loader.dispose()
        return node

    def _pairs(self, node: yaml.MappingNode, prefix: str) -> Iterator[tuple[str, Any]]:
        names: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key.start_mark, "the name of a field is not text")
            name = self._text(key)
            if name in names:
                raise self._error(key.start_mark, f"`{name}` occurs twice")
            names.add(name)
            self.lines[f"{prefix}{name}"] = key.start_mark.line + self._first_line
            yield name, self._value(value, f"{prefix}{name}")

    def _value(self, node: yaml.Node, path: str) -> Any:
        if isinstance(node, yaml.MappingNode):
            return dict(self._pairs(node, f"{path}."))
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self.lines[f"{path}.{number}"] = item.start_mark.line + self._first_line
            return [self._value(item, f"{path}.{index}") for index, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        text = self._text(node)
        return text if node.style else _parse_scalar(text)

    def _text(self, node: yaml.ScalarNode) -> str:
        """Return the scalar's text. JSON writes a character beyond U+FFFF as two escapes (a
        surrogate pair), which are joined here: https://www.rfc-editor.org/rfc/rfc8259#section-7
        """
        raw: str = node.value
        try:
            text = raw.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise self._error(node.start_mark, "a character that no text may have")
        return text

    def _error(self, mark: _Mark | None, what: str) -> FrontmatterError:
        return FrontmatterError(self._path, mark.line + self._first_line if mark else 1, what)


def _hint(frontmatter: str, mark: _Mark | None) -> str:
    """Return a hint if the line at `mark` has text that needs quotes, the most common mistake."""
    lines = frontmatter.split("\n")
    match = _UNQUOTED_VALUE.fullmatch(lines[mark.line]) if mark and mark.line < len(lines) else None
    return " (put the text in quotes)" if match and _NEEDS_QUOTES.match(match[1]) else ""


def _parse_scalar(text: str) -> str | int | float | bool | None:
    """Return the value of an unquoted scalar by a subset of YAML 1.2's core schema: octal and
    hexadecimal numbers, infinity, NaN and numbers of more than 18 digits stay text.

    See https://yaml.org/spec/1.2.2/#103-core-schema.
    """
    if _NULL.fullmatch(text):
        return None
    if _BOOLEAN.fullmatch(text):
        return text.lower() == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
