"""What is said about settings: wrong values, names that may be misspelled, unknown variables."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from resolver.config.retries import PACE_VARIABLE
from resolver.config.sources import (
    PREFIX,
    SettingsFile,
    SettingSource,
    own_variables,
    repository_names,
)


def environment_warnings(
    environment: Mapping[str, str], kinds: Iterable[type[BaseModel]]
) -> list[str]:
    """Return one sentence for each `RESOLVER_*` variable that is not known, which may be a typo.

    kinds: the models that variables set.
    """
    known = {
        variable
        for kind in kinds
        for name, field in kind.model_fields.items()
        for variable in own_variables(name, field)
        if variable.startswith(PREFIX)
    }
    return [
        f"{variable} is not a setting and is ignored{_suggestion(variable, known, PREFIX)}"
        for variable in sorted(environment)
        if variable.startswith(PREFIX) and variable not in known and variable != PACE_VARIABLE
    ]


def name_faults(file: SettingsFile, settings: type[BaseModel]) -> Iterator[str]:
    """Yield one sentence for each name that must not be in the repository's settings file. No
    suggestion is made for a name that is a setting."""
    allowed = repository_names(settings)
    for name in file:
        if name in allowed:
            continue
        hint = "" if name in settings.model_fields else _suggestion(name, allowed)
        yield f"{file.place(name)}: {name!r} can't be set there{hint}"


def value_fault(error: ErrorDetails, sources: Iterable[SettingSource]) -> str:
    """Return a sentence that says where an invalid value was set and why it is invalid.

    sources: the first one that has the setting has set it.
    """
    name, *path = [str(part) for part in error["loc"]] or [""]
    place = next((source.places[name] for source in sources if name in source.places), name)
    location = ", ".join([place, *([".".join(path)] if path else [])])
    return f"{location}: {_value_message(error)}"


def _value_message(error: ErrorDetails) -> str:
    """Return what is wrong with a value, for a person who sets it and does not know pydantic.

    The value itself is not repeated: it may be a secret.
    Source: https://docs.pydantic.dev/latest/errors/validation_errors/
    """
    match error["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "is not known here"
        case "dict_type" | "model_type" | "model_attributes_type":
            return "must be a mapping (`key: value`)"
    message = re.split(", (?:unable|got) | after validation", error["msg"])[0]
    for pattern, ours in (
        ("^Value error, ", ""),
        ("^.* should (be|have|match)", r"must \1"),
        ("a valid integer", "a whole number"),
        ("a valid boolean.*", "true or false"),
        ("a valid (tuple|list)", "a list"),
        ("a valid string", "text"),
        ("a valid ", "a "),
    ):
        message = re.sub(pattern, ours, message)
    return message


def _suggestion(name: str, names: Iterable[str], prefix: str = "") -> str:
    """Return the question after the most similar of the names, an empty text if none is."""
    without = [other.removeprefix(prefix) for other in sorted(names)]
    matches = get_close_matches(name.removeprefix(prefix), without, n=1)
    return f" (did you mean {prefix}{matches[0]}?)" if matches else ""
