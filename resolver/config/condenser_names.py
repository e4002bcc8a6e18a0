"""Parser of the setting `condenser`.

The value is a comma-separated list of condensers, each with optional integer parameters, like
`browser(keep_last=1),masking,importance`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

NOTHING = "none"
_ENDS = ("keep_first", "keep_last")

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    NOTHING: (),
    "recent": _ENDS,
    "masking": ("keep_last", "at_once"),
    "browser": ("keep_last", "at_once"),
    "amortized": ("most", "keep_first"),
    "window": _ENDS,
    "summarizing": _ENDS,
    "attention": _ENDS,
    "structured": _ENDS,
    "importance": _ENDS,
}
"""The condensers and the parameters that each accepts."""

MOST = 10_000
"""Maximum value of a parameter."""

_STAGE = re.compile(r"\s*([a-z_]+)\s*(?:\(([^()]*)\))?\s*(?:,|$)")
_GIVEN = re.compile(r"\s*([a-z_]+)\s*=\s*(\d{1,6})\s*")


@dataclass(frozen=True)
class CondenserStage:
    """One condenser of the list, with its parameters."""

    name: str
    parameters: Mapping[str, int]


def parse_condenser(text: str) -> tuple[CondenserStage, ...]:
    """Return the condensers that `text` lists, in order.

    Raises ValueError that says what is wrong if the text is not a valid list.
    """
    stages: list[CondenserStage] = []
    at = 0
    while at < len(text):
        found = _STAGE.match(text, at)
        if found is None:
            raise ValueError(f"can't be read from {text[at : at + 40]!r} on; like `browser,window`")
        stages.append(_stage(found.group(1), found.group(2) or ""))
        at = found.end()
    if not stages:
        raise ValueError(f"names no condenser; they are {', '.join(PARAMETERS)}")
    return tuple(stages)


def _stage(name: str, given: str) -> CondenserStage:
    known = PARAMETERS.get(name)
    if known is None:
        raise ValueError(f"there is no condenser {name!r}; they are {', '.join(PARAMETERS)}")
    parameters: dict[str, int] = {}
    for part in filter(str.strip, given.split(",")):
        found = _GIVEN.fullmatch(part)
        if found is None or found.group(1) not in known:
            takes = f"it takes {' and '.join(known)}" if known else "it takes nothing"
            raise ValueError(f"{name} takes no {part.strip()!r}; {takes}, as whole numbers")
        if int(found.group(2)) > MOST:
            raise ValueError(f"{name}: {part.strip()} is more than {MOST}")
        parameters[found.group(1)] = int(found.group(2))
    return CondenserStage(name, parameters)
