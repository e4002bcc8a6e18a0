"""Validate GitHub's answers that may differ from the documented form.

An unexpected element of a list is skipped without affecting the others. An answer that is needed as
a whole is validated by its model; `GitHubAccess.asking` converts the failure into a message.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

MOST_FIELDS = 3
"""Maximum number of unexpected fields that a message names."""

Shape = TypeVar("Shape", bound=BaseModel)

_LIST = TypeAdapter(list[Any])


def read_rows(kind: type[Shape], rows: Any) -> tuple[list[Shape], int]:
    """Return the elements of a list that have the expected form, and how many have not.

    Raises ValidationError if `rows` is not a list.
    """
    found: list[Shape] = []
    unread = 0
    for row in _LIST.validate_python(rows):
        try:
            found.append(kind.model_validate(row))
        except ValidationError:
            unread += 1
    return found, unread


def unexpected_fields(error: ValidationError) -> str:
    """Return the names of the first missing or unexpected fields of an answer.

    They look like `start_line, steps.0.name`. The result is "" if the answer as a whole is
    something else. The fields' values are never included.
    """
    # Values are never quoted: they may contain a secret, or any stranger's text.
    places: Sequence[tuple[int | str, ...]] = [
        each["loc"] for each in error.errors(include_url=False, include_input=False)
    ]
    named = dict.fromkeys(".".join(map(str, place)) for place in places if place)
    return ", ".join(list(named)[:MOST_FIELDS])
