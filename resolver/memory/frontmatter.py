"""Reads Markdown files with YAML frontmatter between two `---` lines: skills and agent definitions.

Every value is text: the words and dates that YAML gives a meaning (`on`, `no`, `1.10`) stay as they
are written, and the model of the fields says what a text stands for. Whatever its bytes are, a file
gives its fields or a FrontmatterError.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from resolver.config.bounded_yaml import read_yaml
from resolver.errors import FrontmatterError

MAX_FRONTMATTER_LENGTH = 16_000
"""Maximum characters of the frontmatter, without its two `---` lines."""

_OPENING = re.compile(r"\s*^---[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Document:
    """Represents a parsed file. `fields` is empty if the file has no frontmatter.

    lines: line number in the file (from 1) of each field.
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

    Raises FrontmatterError if the frontmatter has no closing line, is not YAML or not a mapping,
    has a duplicate field, or is too large.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    opening = _OPENING.match(text)
    if opening is None:
        return Document(path, {}, text.strip("\n"), {})
    first_line = text.count("\n", 0, opening.end()) + 1
    closing = _FENCE.search(text, opening.end() + 1)
    if closing is None:
        what = "the front matter that begins here has no closing `---` line"
        raise FrontmatterError(path, first_line, what)
    frontmatter = text[opening.end() : closing.start() - 1]
    if len(frontmatter) > MAX_FRONTMATTER_LENGTH:
        what = f"the front matter has more than {MAX_FRONTMATTER_LENGTH} characters"
        raise FrontmatterError(path, first_line, what)
    try:
        fields = read_yaml(frontmatter, texts=True) or {}
        json.dumps(fields, ensure_ascii=False).encode()
        node = yaml.compose(frontmatter, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = f"this is not valid YAML: {error.problem or error.context}"
        raise FrontmatterError(path, first_line + (mark.line if mark else 0), what) from error
    except yaml.reader.ReaderError as error:
        line = first_line + frontmatter.count("\n", 0, int(error.position))
        raise FrontmatterError(path, line, "a character that YAML forbids") from error
    except UnicodeEncodeError as error:
        raise FrontmatterError(path, first_line, "an escape sequence is no character") from error
    if not isinstance(fields, dict):
        what = "the front matter is not a mapping of fields (`name: value`)"
        raise FrontmatterError(path, first_line + 1, what)
    lines: dict[str, int] = {}
    for key, _ in node.value if node else ():
        line = first_line + key.start_mark.line
        if key.value in lines:
            raise FrontmatterError(path, line, f"`{key.value}` occurs twice")
        lines[key.value] = line
    return Document(path, fields, text[closing.end() :].strip("\n"), lines)


def validate_document(document: Document, model: type[M]) -> M:
    """Return the fields as an instance of `model`.

    Raises FrontmatterError with the line of the first invalid field.
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
        line = document.lines.get(field.partition(".")[0], 1)
        raise FrontmatterError(document.path, line, f"{message}{suffix}") from error


def split_list(value: Any) -> Any:
    """Split text at its commas; leave a list as it is. None becomes an empty list."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [] if value is None else value


def to_single_line(value: Any) -> Any:
    """Return text as one line; leave other values as they are."""
    return " ".join(value.split()) if isinstance(value, str) else value


_TYPE_MESSAGES = {
    "tuple_type": "this has to be a list",
    "list_type": "this has to be a list",
    "model_type": "this has to be a mapping of fields (`name: value`)",
    "dict_type": "this has to be a mapping of fields (`name: value`)",
}
"""Clearer messages for pydantic's error types: people who write YAML know lists, not tuples."""
