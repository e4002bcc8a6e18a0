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
    return f"{location}: {error['msg'].removeprefix('Value error, ')}"


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
