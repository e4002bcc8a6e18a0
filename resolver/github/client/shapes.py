"""GitHub's answers read by the shape that its API documents, where one may have another.

One unexpected element of a list loses itself and nothing else. What is read as a whole is
validated by its model; `GitHubAccess.asking` puts the failure into words of ours.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

MOST_FIELDS = 3
"""Fields of an unexpected answer that are named."""

Shape = TypeVar("Shape", bound=BaseModel)

_LIST = TypeAdapter(list[Any])


def read_rows(kind: type[Shape], rows: Any) -> tuple[list[Shape], int]:
    """The elements of a list that have the shape, and how many have not. Raises ValidationError
    where there is no list."""
    found: list[Shape] = []
    unread = 0
    for row in _LIST.validate_python(rows):
        try:
            found.append(kind.model_validate(row))
        except ValidationError:
            unread += 1
    return found, unread


def unexpected_fields(error: ValidationError) -> str:
    """The first fields that an answer has not, or not as expected, as `start_line, steps.0.name`;
    "" where it is another thing altogether. Nothing of what stands in them is told."""
    # An input is never quoted: it may hold a secret, or any stranger's words.
    places: Sequence[tuple[int | str, ...]] = [
        each["loc"] for each in error.errors(include_url=False, include_input=False)
    ]
    named = dict.fromkeys(".".join(map(str, place)) for place in places if place)
    return ", ".join(list(named)[:MOST_FIELDS])
