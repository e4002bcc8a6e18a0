"""Names of settings: suggestions for misspelled ones, warnings about old ones, error messages."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from resolver.config.declaration import extra, setting_parts
from resolver.config.renamed_settings import REMOVED, RENAMED, old_names, replacement, target_of

PREFIX = "RESOLVER_"

_BESIDES_SETTINGS = frozenset({"RESOLVER_SANDBOX_TOKEN"})
"""Variables that single commands read, in addition to the settings."""

# Kubernetes and Docker links define variables for each service: one named `resolver` causes these.
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_OF_A_SERVICE = re.compile(
    r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$"
)


def input_variables(*names: str) -> list[str]:
    """Return the variables of inputs with these names, "" for none, in order of precedence.

    The Actions runner upper-cases the name of an input and keeps its hyphens, so that both
    spellings are read.
    """
    inputs = [f"INPUT_{name.upper()}" for name in names if name]
    hyphenated = [n.replace("_", "-").replace("INPUT-", "INPUT_", 1) for n in inputs]
    return list(dict.fromkeys([*inputs, *hyphenated]))


def own_variables(name: str, names: Iterable[str] = ()) -> list[str]:
    """Return the variables that are read in addition to inputs, in order of precedence.

    name: name of a setting, or an old name of one; "" for none.
    names: further variables, as given to `setting` or `part`.
    """
    return [*([f"{PREFIX}{name.upper()}"] if name else []), *names]


def variable_names(name: str, field: FieldInfo) -> list[str]:
    """Return all environment variables that set a setting or a part of it."""
    established = [each for one in setting_parts(field).values() for each in extra(one)["names"]]
    old = [former for former, _ in old_names(name)]
    return [
        *_variables(name, extra(field)["names"]),
        *_variables("", established),
        *(variable for former in old for variable in _variables(former)),
    ]


def environment_warnings(
    environment: Mapping[str, str], settings: Mapping[str, FieldInfo]
) -> list[str]:
    """Return one sentence for each variable with the name of an old, a removed or no setting.

    Among the variables that are no settings at all, only `RESOLVER_*` ones are reported.

    settings: the fields of `Settings`.
    """
    known = {v for name, field in settings.items() for v in variable_names(name, field)}
    said = {variable: _renamed(variable, old) for old in RENAMED for variable in _variables(old)}
    said |= {variable: _removed(variable, old) for old in REMOVED for variable in _variables(old)}
    unknown = {
        variable: f"{variable} is not a setting and is ignored{_suggestion(variable, known)}"
        for variable in environment
        if variable.startswith(PREFIX)
        and variable not in known | _BESIDES_SETTINGS
        and not _OF_A_SERVICE.search(variable)
    }
    # An input that is not given is an empty variable.
    given = {variable: text for variable, text in said.items() if environment.get(variable)}
    sentences = {v: text for v, text in unknown.items() if v not in said} | given
    return [sentences[variable] for variable in sorted(sentences)]


def repository_warnings(file: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return one sentence for each name in the repository's file that is an old or removed one."""
    return tuple(_repository_warnings(file, names))


def _repository_warnings(file: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if name in RENAMED:
            yield f"{file}: {name} is deprecated; write `{replacement(name)}`"
        elif name in REMOVED:
            yield _removed(f"{file}: {name}", name)


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
        meant = None if name in settings or name in RENAMED else closest_name(name, allowed)
        told = f" (did you mean {meant!r}?)" if meant else ""
        yield f"{name!r} can't be set there{told}"


def value_fault(error: ErrorDetails, origin: Mapping[str, str]) -> str:
    """Return a sentence that says where an invalid value was set and why it is invalid.

    origin: the source of each setting's value, by the name of the setting; of structured settings
    also by `SETTING.PART`.
    """
    name, *within = [str(part) for part in error["loc"]] or [""]
    if within and f"{name}.{within[0]}" in origin:
        name, within = f"{name}.{within[0]}", within[1:]
    where = ", ".join([origin.get(name, name), *([".".join(within)] if within else [])])
    return f"{where}: {error['msg'].removeprefix('Value error, ')}"


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar of the names, or None if none is similar."""
    alike = get_close_matches(name, sorted(names), n=1)
    return alike[0] if alike else None


def _variables(name: str, names: Iterable[str] = ()) -> list[str]:
    return [*input_variables(name, *names), *own_variables(name, names)]


def _renamed(variable: str, old: str) -> str:
    name, within = target_of(old)
    is_input = not variable.startswith(PREFIX)
    current = f"the input {name.replace('_', '-')}" if is_input else f"{PREFIX}{name.upper()}"
    value = f" with the value {{{within}: ...}}" if within else ""
    return f"{variable} is deprecated; use {current}{value}"


def _removed(label: str, old: str) -> str:
    return f"{label} no longer exists and is ignored: {REMOVED[old]}"


def _suggestion(variable: str, known: Collection[str]) -> str:
    """Return `; did you mean X?` with the known name that is most similar, or "" if none is.

    An old name is never suggested, but the one that replaces it.
    """
    names = (name.removeprefix(PREFIX) for name in known if name.startswith(PREFIX))
    meant = closest_name(variable.removeprefix(PREFIX), names)
    if meant is None:
        return ""
    current = target_of(meant.lower())[0].upper() if meant.lower() in RENAMED else meant
    return f"; did you mean {PREFIX}{current}?"
