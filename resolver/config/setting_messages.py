"""What is said about settings: wrong values, names that may be misspelled, unknown variables."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from resolver.config.pace import VARIABLE as PACE_VARIABLE
from resolver.config.sources import (
    PREFIX,
    SettingsFile,
    SettingSource,
    own_variables,
    repository_names,
)

# Kubernetes and Docker links define variables for each service: one named `resolver` causes these.
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_SERVICE_LINK = re.compile(
    r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$"
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
        f"{variable} is not a setting and is ignored{_suggestion(variable, known)}"
        for variable in sorted(environment)
        if variable.startswith(PREFIX)
        and variable not in known
        and variable != PACE_VARIABLE
        and not _SERVICE_LINK.search(variable)
    ]


def name_faults(file: SettingsFile, settings: type[BaseModel]) -> Iterator[str]:
    """Yield one sentence for each name that must not be in the repository's settings file. No
    suggestion is made for a name that is a setting."""
    allowed = repository_names(settings)
    for name in file:
        if name in allowed:
            continue
        suggestion = None if name in settings.model_fields else closest_name(name, allowed)
        hint = f" (did you mean {suggestion!r}?)" if suggestion else ""
        yield f"{file.place(name)}: {name!r} can't be set there{hint}"


def value_fault(error: ErrorDetails, sources: Iterable[SettingSource]) -> str:
    """Return a sentence that says where an invalid value was set and why it is invalid.

    sources: the first one that has the setting has set it.
    """
    name, *path = [str(part) for part in error["loc"]] or [""]
    place = next((source.places[name] for source in sources if name in source.places), name)
    location = ", ".join([place, *([".".join(path)] if path else [])])
    return f"{location}: {value_message(error)}"


_VALUE_MESSAGES = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    "finite_number": "must be a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "string_type": "must be text",
    **dict.fromkeys(("tuple_type", "list_type"), "must be a list"),
    **dict.fromkeys(
        ("dict_type", "model_type", "model_attributes_type"), "must be a mapping (`key: value`)"
    ),
    **dict.fromkeys(("literal_error", "enum"), "must be {expected}"),
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "string_pattern_mismatch": "must match the pattern {pattern}",
}
"""What is wrong with a value, by pydantic's type of the error.

Source: https://docs.pydantic.dev/latest/errors/validation_errors/
"""


def value_message(error: ErrorDetails) -> str:
    """Return what is wrong with a value, for a person who sets it and does not know pydantic.

    The value itself is not repeated: it may be a secret.
    """
    message = _VALUE_MESSAGES.get(error["type"])
    if message is None:
        return error["msg"].removeprefix("Value error, ")
    return message.format_map(error.get("ctx", {}))


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar of the names, or None if none is similar."""
    matches = get_close_matches(name, sorted(names), n=1)
    return matches[0] if matches else None


def _suggestion(variable: str, names: Iterable[str]) -> str:
    """Return `; did you mean X?` with the variable that is most similar, or "" if none is."""
    closest = closest_name(
        variable.removeprefix(PREFIX), (name.removeprefix(PREFIX) for name in names)
    )
    return f"; did you mean {PREFIX}{closest}?" if closest else ""
