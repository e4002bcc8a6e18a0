"""Parser of the setting `condenser`.

The value is a comma-separated list of condensers, each with optional integer parameters, like
`browser(keep_last=1),masking,importance`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

NO_CONDENSER = "none"
_KEEP_PARAMETERS = ("keep_first", "keep_last")

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    NO_CONDENSER: (),
    "recent": _KEEP_PARAMETERS,
    "masking": ("keep_last", "at_once"),
    "browser": ("keep_last", "at_once"),
    "amortized": ("most", "keep_first"),
    "window": _KEEP_PARAMETERS,
    "summarizing": _KEEP_PARAMETERS,
    "attention": _KEEP_PARAMETERS,
    "structured": _KEEP_PARAMETERS,
    "importance": _KEEP_PARAMETERS,
}
"""The condensers and the parameters that each accepts."""

MAX_PARAMETER = 10_000
"""Maximum value of a parameter."""

_STAGE = re.compile(r"\s*([a-z_]+)\s*(?:\(([^()]*)\))?\s*(?:,|$)")
_PARAMETER = re.compile(r"\s*([a-z_]+)\s*=\s*(\d{1,6})\s*")


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
    position = 0
    while position < len(text):
        match = _STAGE.match(text, position)
        if match is None:
            raise ValueError(
                f"can't be read from {text[position : position + 40]!r} on; like `browser,window`"
            )
        stages.append(_parse_stage(match.group(1), match.group(2) or ""))
        position = match.end()
    if not stages:
        raise ValueError(f"names no condenser; they are {', '.join(PARAMETERS)}")
    return tuple(stages)


def _parse_stage(name: str, arguments: str) -> CondenserStage:
    allowed = PARAMETERS.get(name)
    if allowed is None:
        raise ValueError(f"there is no condenser {name!r}; they are {', '.join(PARAMETERS)}")
    parameters: dict[str, int] = {}
    for part in filter(str.strip, arguments.split(",")):
        match = _PARAMETER.fullmatch(part)
        if match is None or match.group(1) not in allowed:
            accepted = f"it takes {' and '.join(allowed)}" if allowed else "it takes nothing"
            raise ValueError(f"{name} takes no {part.strip()!r}; {accepted}, as whole numbers")
        if int(match.group(2)) > MAX_PARAMETER:
            raise ValueError(f"{name}: {part.strip()} is more than {MAX_PARAMETER}")
        parameters[match.group(1)] = int(match.group(2))
    return CondenserStage(name, parameters)
