"""Names of settings and their environment variables, suggestions for misspelled ones, messages."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from resolver.config.declaration import setting_arguments, setting_parts

PREFIX = "RESOLVER_"

# Kubernetes and Docker links define variables for each service: one named `resolver` causes these.
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_SERVICE_LINK = re.compile(
    r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$"
)


def input_variables(name: str, names: Iterable[str] = ()) -> list[str]:
    """Return the variables of the inputs for a setting or a part of it, in order of precedence.

    The Actions runner upper-cases the name of an input and keeps its hyphens, so that both
    spellings are read. For the arguments see `own_variables`.
    """
    inputs = [f"INPUT_{given.upper()}" for given in (name, *names) if given]
    hyphenated = [variable.replace("_", "-").replace("INPUT-", "INPUT_", 1) for variable in inputs]
    return list(dict.fromkeys([*inputs, *hyphenated]))


def own_variables(name: str, names: Iterable[str] = ()) -> list[str]:
    """Return the variables that are read in addition to inputs, in order of precedence.

    name: name of a setting; "" for a part of one.
    names: further variables, as given to `setting` or `part`.
    """
    return [*([f"{PREFIX}{name.upper()}"] if name else []), *names]


def variable_names(name: str, field: FieldInfo) -> list[str]:
    """Return all environment variables that set a setting or a part of it."""
    named = [
        (name, setting_arguments(field)["names"]),
        *(("", setting_arguments(part)["names"]) for part in setting_parts(field).values()),
    ]
    return [
        variable
        for own_name, names in named
        for variable in (*input_variables(own_name, names), *own_variables(own_name, names))
    ]


def environment_warnings(
    environment: Mapping[str, str], settings: Mapping[str, FieldInfo]
) -> list[str]:
    """Return one sentence for each `RESOLVER_*` variable that is not a setting, which may be a
    typo.

    settings: the fields of `Settings`.
    """
    known = {v for name, field in settings.items() for v in variable_names(name, field)}
    names = {variable for variable in known if variable.startswith(PREFIX)}
    return [
        f"{variable} is not a setting and is ignored{_suggestion(variable, names)}"
        for variable in sorted(environment)
        if variable.startswith(PREFIX)
        and variable not in names
        and not _SERVICE_LINK.search(variable)
    ]


def name_faults(
    names: Iterable[str], settings: Mapping[str, FieldInfo], allowed: Collection[str]
) -> Iterator[str]:
    """Yield one sentence for each name that must not be in the repository's settings file.

    settings: the fields of `Settings`. No suggestion is made for a name that is one of them.
    allowed: those that a repository may set.
    """
    for name in names:
        if name in allowed:
            continue
        suggestion = None if name in settings else closest_name(name, allowed)
        hint = f" (did you mean {suggestion!r}?)" if suggestion else ""
        yield f"{name!r} can't be set there{hint}"


def value_fault(
    error: ErrorDetails, origin: Mapping[str, str], settings: Mapping[str, FieldInfo]
) -> str:
    """Return a sentence that says where an invalid value was set and why it is invalid.

    origin: the source of each setting's value, by the name of the setting; of structured settings
    also by `SETTING.PART`. settings: the fields of `Settings`.
    """
    name, *part_path = [str(part) for part in error["loc"]] or [""]
    setting = name
    if part_path and f"{name}.{part_path[0]}" in origin:
        name, part_path = f"{name}.{part_path[0]}", part_path[1:]
    location = ", ".join([origin.get(name, name), *([".".join(part_path)] if part_path else [])])
    parts = setting_parts(settings[setting]) if setting in settings else {}
    if error["type"] == "extra_forbidden" and len(error["loc"]) == 2 and parts:
        suggestion = closest_name(str(error["loc"][1]), parts)
        hint = f" (did you mean {suggestion!r}?)" if suggestion else f", only {', '.join(parts)}"
        return f"{location}: is not a part of {setting}{hint}"
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
