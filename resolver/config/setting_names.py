"""Names of settings: suggestions for misspelled ones, warnings about old ones, error messages."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from resolver.config.declaration import extra, setting_parts
from resolver.config.renamed_settings import REMOVED, RENAMED, old_names, replacement, target_of

PREFIX = "RESOLVER_"

_COMMAND_VARIABLES = frozenset({"RESOLVER_SANDBOX_TOKEN"})
"""Variables that single commands read, in addition to the settings."""

# Kubernetes and Docker links define variables for each service: one named `resolver` causes these.
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_SERVICE_LINK = re.compile(
    r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$"
)


def input_variables(*names: str) -> list[str]:
    """Return the variables of inputs with these names, "" for none, in order of precedence.

    The Actions runner upper-cases the name of an input and keeps its hyphens, so that both
    spellings are read.
    """
    inputs = [f"INPUT_{name.upper()}" for name in names if name]
    hyphenated = [variable.replace("_", "-").replace("INPUT-", "INPUT_", 1) for variable in inputs]
    return list(dict.fromkeys([*inputs, *hyphenated]))


def own_variables(name: str, names: Iterable[str] = ()) -> list[str]:
    """Return the variables that are read in addition to inputs, in order of precedence.

    name: name of a setting, or an old name of one; "" for none.
    names: further variables, as given to `setting` or `part`.
    """
    return [*([f"{PREFIX}{name.upper()}"] if name else []), *names]


def variable_names(name: str, field: FieldInfo) -> list[str]:
    """Return all environment variables that set a setting or a part of it."""
    established = [
        variable for part in setting_parts(field).values() for variable in extra(part)["names"]
    ]
    old_settings = [old_name for old_name, _ in old_names(name)]
    return [
        *_variables_of(name, extra(field)["names"]),
        *_variables_of("", established),
        *(variable for old_name in old_settings for variable in _variables_of(old_name)),
    ]


def environment_warnings(
    environment: Mapping[str, str], settings: Mapping[str, FieldInfo]
) -> list[str]:
    """Return one sentence for each variable with the name of an old, a removed or no setting.

    Among the variables that are no settings at all, only `RESOLVER_*` ones are reported.

    settings: the fields of `Settings`.
    """
    known = {v for name, field in settings.items() for v in variable_names(name, field)}
    warnings = {
        variable: _rename_warning(variable, old)
        for old in RENAMED
        for variable in _variables_of(old)
    }
    warnings |= {
        variable: _removal_warning(variable, old)
        for old in REMOVED
        for variable in _variables_of(old)
    }
    unknown = {
        variable: f"{variable} is not a setting and is ignored{_suggestion(variable, known)}"
        for variable in environment
        if variable.startswith(PREFIX)
        and variable not in known | _COMMAND_VARIABLES
        and not _SERVICE_LINK.search(variable)
    }
    # An input that is not given is an empty variable.
    applicable = {
        variable: text for variable, text in warnings.items() if environment.get(variable)
    }
    sentences = {v: text for v, text in unknown.items() if v not in warnings} | applicable
    return [sentences[variable] for variable in sorted(sentences)]


def repository_warnings(file: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return one sentence for each name in the repository's file that is an old or removed one."""
    return tuple(_repository_warnings(file, names))


def _repository_warnings(file: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if name in RENAMED:
            yield f"{file}: {name} is deprecated; write `{replacement(name)}`"
        elif name in REMOVED:
            yield _removal_warning(f"{file}: {name}", name)


def name_faults(
    names: Iterable[str], settings: Mapping[str, FieldInfo], allowed: Collection[str]
) -> Iterator[str]:
    """Yield one sentence for each name that must not be in the repository's settings file.

    settings: the fields of `Settings`. No suggestion is made for a name that is one of them.
    allowed: those that a repository may set. Their old names are accepted, and so are removed
    settings.
    """
    for name in names:
        if name in allowed or name in REMOVED:
            continue
        if name in RENAMED and target_of(name)[0] in allowed:
            continue
        suggestion = None if name in settings or name in RENAMED else closest_name(name, allowed)
        hint = f" (did you mean {suggestion!r}?)" if suggestion else ""
        yield f"{name!r} can't be set there{hint}"


def value_fault(error: ErrorDetails, origin: Mapping[str, str]) -> str:
    """Return a sentence that says where an invalid value was set and why it is invalid.

    origin: the source of each setting's value, by the name of the setting; of structured settings
    also by `SETTING.PART`.
    """
    name, *part_path = [str(part) for part in error["loc"]] or [""]
    if part_path and f"{name}.{part_path[0]}" in origin:
        name, part_path = f"{name}.{part_path[0]}", part_path[1:]
    location = ", ".join([origin.get(name, name), *([".".join(part_path)] if part_path else [])])
    return f"{location}: {error['msg'].removeprefix('Value error, ')}"


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar of the names, or None if none is similar."""
    matches = get_close_matches(name, sorted(names), n=1)
    return matches[0] if matches else None


def _variables_of(name: str, names: Iterable[str] = ()) -> list[str]:
    return [*input_variables(name, *names), *own_variables(name, names)]


def _rename_warning(variable: str, old: str) -> str:
    name, part = target_of(old)
    is_input = not variable.startswith(PREFIX)
    current = f"the input {name.replace('_', '-')}" if is_input else f"{PREFIX}{name.upper()}"
    value = f" with the value {{{part}: ...}}" if part else ""
    return f"{variable} is deprecated; use {current}{value}"


def _removal_warning(label: str, old: str) -> str:
    return f"{label} no longer exists and is ignored: {REMOVED[old]}"


def _suggestion(variable: str, known: Collection[str]) -> str:
    """Return `; did you mean X?` with the known name that is most similar, or "" if none is.

    An old name is never suggested, but the one that replaces it.
    """
    names = (name.removeprefix(PREFIX) for name in known if name.startswith(PREFIX))
    closest = closest_name(variable.removeprefix(PREFIX), names)
    if closest is None:
        return ""
    current = target_of(closest.lower())[0].upper() if closest.lower() in RENAMED else closest
    return f"; did you mean {PREFIX}{current}?"
