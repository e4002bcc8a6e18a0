"""Markdown files with a head of YAML between two `---` lines: skills and agents by definition.

The YAML is plain data: mappings with text keys, lists, text, numbers, true, false, null. Anchors,
tags, and what YAML 1.1 makes of words (`on`, `no`) and of dates are left out, so that whatever the
bytes are, a file gives its fields or a FrontmatterError.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from resolver.errors import FrontmatterError

MAX_HEAD = 16_000
"""Characters between the two lines."""

MAX_DEPTH = 12
"""How deep lists and mappings may stand in each other."""

FENCE = "---"

_TEXT = re.compile(r"\s*(?:(?:- +)*[\w-]+:|-) +(?![\s\"'|>])(.+)")
_NEEDS_QUOTES = re.compile(r"[*&@`%!\[{]|.*:(\s|$)")
_NULL = re.compile(r"|~|null|Null|NULL")
_BOOLEAN = re.compile(r"true|True|TRUE|false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,2})?")

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Document:
    """A file, read. `fields` is empty where it has no head.

    lines: line in the file of each field by its dotted path (`name`, `inputs.0.name`), from 1.
    """

    path: str
    fields: Mapping[str, Any]
    body: str
    lines: Mapping[str, int]


def read_document(text: str, path: str) -> Document:
    """The fields and the body of a file.

    text: the whole file; a byte order mark, Windows line ends and empty lines at the top do no
    harm. path: for the errors. A file that does not begin with a `---` line has no head.
    Raises FrontmatterError when the head has no end, is no mapping, has a field twice, or is too
    large.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    begin = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if lines[begin].rstrip() != FENCE:
        return Document(path, {}, "\n".join(lines).strip("\n"), {})
    first = begin + 1
    end = next((n for n, line in enumerate(lines[first:], first) if line.rstrip() == FENCE), None)
    if end is None:
        raise FrontmatterError(path, first, "the head that begins here has no closing `---` line")
    head = "\n".join(lines[first:end])
    if len(head) > MAX_HEAD:
        raise FrontmatterError(path, first, f"the head has more than {MAX_HEAD} characters")
    reader = _HeadReader(path, first + 1)
    fields = reader.fields(head)
    return Document(path, fields, "\n".join(lines[end + 1 :]).strip("\n"), reader.lines)


def validated(document: Document, model: type[M]) -> M:
    """The fields as `model` wants them.

    Raises FrontmatterError with the line of the first field that is wrong; a missing one is
    reported at the mapping that lacks it.
    """
    try:
        return model.model_validate(dict(document.fields))
    except ValidationError as error:
        first, *more = error.errors(include_url=False)
        where = ".".join(str(part) for part in first["loc"])
        what = _NOT_OF_TYPE.get(first["type"], first["msg"].removeprefix("Value error, "))
        others = f" (and {len(more)} more)" if more else ""
        named = f"`{where}`: {what}" if where else what
        raise FrontmatterError(
            document.path, _line_of(document, first["loc"]), f"{named}{others}"
        ) from error


_NOT_OF_TYPE = {
    "tuple_type": "this is to be a list",
    "list_type": "this is to be a list",
    "model_type": "this is to be a mapping of fields (`name: value`)",
    "dict_type": "this is to be a mapping of fields (`name: value`)",
}
"""What the library says in words of its own, for those who write YAML."""


def _line_of(document: Document, place: tuple[int | str, ...]) -> int:
    """The line of a field, or of the nearest around it; else the file's first."""
    for length in range(len(place), 0, -1):
        line = document.lines.get(".".join(str(part) for part in place[:length]))
        if line is not None:
            return line
    return 1


class _Mark(Protocol):
    """A place in the head; lines from 0. The library has two classes of it."""

    line: int


class _HeadReader:
    """Reads one head; `lines` fills up on the way. first: the line in the file of its first."""

    def __init__(self, path: str, first: int) -> None:
        self._path = path
        self._first = first
        self.lines: dict[str, int] = {}

    def fields(self, head: str) -> dict[str, Any]:
        """The head as a mapping."""
        try:
            self._refuse_what_is_no_plain_data(head)
            node = yaml.compose(head, Loader=yaml.BaseLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = error.problem or error.context or "can't be read"
            raise self._error(mark, f"this is no YAML: {what}{_hint(head, mark)}") from error
        except yaml.reader.ReaderError as error:
            line = head.count("\n", 0, int(error.position)) + self._first
            raise FrontmatterError(self._path, line, "a character that YAML forbids") from error
        except (ValueError, OverflowError) as error:  # an escape beyond the last character
            raise FrontmatterError(self._path, self._first, f"this is no YAML: {error}") from error
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node.start_mark, "the head is no mapping of fields (`name: value`)")
        return dict(self._pairs(node, ""))

    def _refuse_what_is_no_plain_data(self, head: str) -> None:
        """Looks at the parser's events, which need no memory, before a tree is built of them."""
        depth = 0
        for event in yaml.parse(head, Loader=yaml.BaseLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > MAX_DEPTH:
                raise self._error(
                    event.start_mark, "lists or mappings stand too deep in each other"
                )
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise self._error(event.start_mark, "anchors (`&name`, `*name`) are not read here")
            if getattr(event, "tag", None) not in (None, "!"):
                raise self._error(event.start_mark, "tags (`!name`) are not read here")

    def _pairs(self, node: yaml.MappingNode, prefix: str) -> Iterator[tuple[str, Any]]:
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key.start_mark, "the name of a field is no text")
            name = self._text(key)
            if name in seen:
                raise self._error(key.start_mark, f"`{name}` stands here twice")
            seen.add(name)
            self.lines[f"{prefix}{name}"] = key.start_mark.line + self._first
            yield name, self._value(value, f"{prefix}{name}")

    def _value(self, node: yaml.Node, place: str) -> Any:
        if isinstance(node, yaml.MappingNode):
            return dict(self._pairs(node, f"{place}."))
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self.lines[f"{place}.{number}"] = item.start_mark.line + self._first
            return [self._value(item, f"{place}.{n}") for n, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        text = self._text(node)
        return text if node.style else _plain(text)

    def _text(self, node: yaml.ScalarNode) -> str:
        """The words. JSON writes characters beyond 16 bits as two escapes, which are joined."""
        raw: str = node.value
        try:
            text = raw.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise self._error(node.start_mark, "a character that no text may have")
        return text

    def _error(self, mark: _Mark | None, what: str) -> FrontmatterError:
        return FrontmatterError(self._path, mark.line + self._first if mark else 1, what)


def _hint(head: str, mark: _Mark | None) -> str:
    """What helps where the text of a field would need quotes: what people forget most."""
    lines = head.split("\n")
    found = _TEXT.fullmatch(lines[mark.line]) if mark and mark.line < len(lines) else None
    return " (put the text in quotes)" if found and _NEEDS_QUOTES.match(found[1]) else ""


def _plain(text: str) -> str | int | float | bool | None:
    """What a word without quotes stands for, as in YAML 1.2's core schema."""
    if _NULL.fullmatch(text):
        return None
    if _BOOLEAN.fullmatch(text):
        return text.lower() == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
