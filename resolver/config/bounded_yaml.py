"""Parser for untrusted YAML with limits on size, depth and alias expansion.

A few hundred bytes of nested aliases can expand to gigabytes (the "billion laughs" attack), so the
expanded size is computed from the parser's events before any value is constructed.
"""

from collections.abc import Iterable
from typing import Any

import yaml

MAX_YAML_LENGTH = 250_000
"""Maximum length of the input, in bytes or characters. GitHub's own workflows are far below it."""

MAX_EXPANDED_SIZE = 500_000
"""Maximum number of nodes and characters after every alias is expanded."""

_MAX_DEPTH = 50
"""Maximum nesting depth of lists and mappings."""

_MAX_NUMBER_CHARACTERS = 100
"""Maximum number of characters of a number.

The time to convert a number from and to text grows faster than its length.
"""


class _Loader(yaml.SafeLoader):
    """A SafeLoader (plain values only) that refuses numbers longer than the limit."""

    def construct_number(self, node: yaml.ScalarNode) -> float:
        """Return the number in the node. Raises ConstructorError if it is too long."""
        if len(node.value) > _MAX_NUMBER_CHARACTERS:
            problem = f"a number of more than {_MAX_NUMBER_CHARACTERS} characters"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        is_whole = node.tag.endswith(":int")
        number: float = (self.construct_yaml_int if is_whole else self.construct_yaml_float)(node)
        return number


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_number)


def read_yaml(content: str | bytes, *, texts: bool = False) -> Any:
    """Return the single document in `content`, or None if it is empty.

    texts: return every scalar as a string and ignore tags.

    Raises yaml.YAMLError, and nothing else, if the content is not YAML, is too large, is nested too
    deeply, contains an alias to an enclosing node, or expands to too much. The error has a
    `problem_mark` if the fault has a position.
    """
    if len(content) > MAX_YAML_LENGTH:
        raise yaml.MarkedYAMLError(problem=f"more than {MAX_YAML_LENGTH} bytes")
    try:
        _check_expansion(yaml.parse(content, Loader=yaml.BaseLoader))
        # Safe although it is yaml.load: both loaders construct plain values only, whatever the
        # tags in the text.
        return yaml.load(content, Loader=yaml.BaseLoader if texts else _Loader)  # noqa: S506
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        # PyYAML does not wrap the errors of values that don't match their tag, like `!!int ""`.
        raise yaml.MarkedYAMLError(problem=f"a value that can't be read: {error}") from None


def _check_expansion(events: Iterable[yaml.Event]) -> None:
    """Raise yaml.MarkedYAMLError if the document is too deep, or too large when expanded.

    An anchor gets its weight (nodes and characters) when its node ends, so an alias inside its own
    node is unknown at that point and is refused. Each alias adds the weight of its anchor to the
    total.
    """
    open_collections: list[tuple[str | None, int]] = []
    weights: dict[str | None, int] = {}
    total = 0
    for event in events:
        size_before = total
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in weights:
                _refuse(event, f"*{event.anchor} is not known here")
            total += weights[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            total += 1 + len(event.value)
            weights[event.anchor] = total - size_before
        elif isinstance(event, yaml.CollectionStartEvent):
            total += 1
            open_collections.append((event.anchor, size_before))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, start_size = open_collections.pop()
            weights[anchor] = total - start_size
        if len(open_collections) > _MAX_DEPTH:
            _refuse(event, f"more than {_MAX_DEPTH} lists and mappings within each other")
        if total > MAX_EXPANDED_SIZE:
            _refuse(event, "its aliases stand for too much")


def _refuse(event: yaml.Event, problem: str) -> None:
    mark = event.start_mark if isinstance(event.start_mark, yaml.Mark) else None
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
