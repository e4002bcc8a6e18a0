"""YAML that strangers may have written, read within bounds of size, depth and repetition.

A few hundred bytes of aliases can stand for gigabytes, so what they stand for is counted first.
"""

from collections.abc import Iterable
from typing import Any

import yaml

LARGEST = 250_000
"""Bytes, or characters, of a text that is read. GitHub's own workflows stay far below it."""

MOST_REPEATED = 500_000
"""Nodes and characters of a text with each alias written out."""

_DEEPEST = 50
"""Lists and mappings within each other."""

_LONGEST_NUMBER = 100
"""Characters. A longer one costs the more to read and to write the longer it is."""


class _Loader(yaml.SafeLoader):
    """Plain values alone, and numbers of a size that can be worked with."""

    def construct_short(self, node: yaml.ScalarNode) -> float:
        if len(node.value) > _LONGEST_NUMBER:
            problem = f"a number of more than {_LONGEST_NUMBER} characters"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        is_whole = node.tag.endswith(":int")
        found: float = (self.construct_yaml_int if is_whole else self.construct_yaml_float)(node)
        return found


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_short)


def read_yaml(content: str | bytes, *, texts: bool = False) -> Any:
    """The one document in a text, None for an empty one.

    texts: every scalar is its text, and tags mean nothing. Raises yaml.YAMLError alone, with a
    `problem_mark` where there is a place to name: for what is no YAML, and for what is too large,
    too deep, stands within itself, or stands for too much.
    """
    if len(content) > LARGEST:
        raise yaml.MarkedYAMLError(problem=f"more than {LARGEST} bytes")
    try:
        _check(yaml.parse(content, Loader=yaml.BaseLoader))
        # both loaders make plain values alone, whatever the text's tags say
        return yaml.load(content, Loader=yaml.BaseLoader if texts else _Loader)  # noqa: S506
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        # what the library lets through for a value that is not of its tag, like `!!int ""`
        raise yaml.MarkedYAMLError(problem=f"a value that can't be read: {error}") from None


def _check(events: Iterable[yaml.Event]) -> None:
    """What an alias names has to be complete before it, and counts each time it is named."""
    opened: list[tuple[str | None, int]] = []
    weights: dict[str | None, int] = {}
    total = 0
    for event in events:
        before = total
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in weights:
                _refuse(event, f"*{event.anchor} is not known here")
            total += weights[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            total += 1 + len(event.value)
            weights[event.anchor] = total - before
        elif isinstance(event, yaml.CollectionStartEvent):
            total += 1
            opened.append((event.anchor, before))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, begun = opened.pop()
            weights[anchor] = total - begun
        if len(opened) > _DEEPEST:
            _refuse(event, f"more than {_DEEPEST} lists and mappings within each other")
        if total > MOST_REPEATED:
            _refuse(event, "its aliases stand for too much")


def _refuse(event: yaml.Event, problem: str) -> None:
    mark = event.start_mark if isinstance(event.start_mark, yaml.Mark) else None
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
