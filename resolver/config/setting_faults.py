"""Messages about unknown or invalid settings, with a suggestion for misspelled names."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches

from pydantic_core import ErrorDetails


def name_faults(
    names: Iterable[str], allowed: Collection[str], known: Collection[str]
) -> Iterator[str]:
    """Yield one sentence for each name that is not allowed.

    known: names of all settings. No suggestion is made for a name that is one of them.
    """
    for name in names:
        if name not in allowed:
            meant = None if name in known else closest_name(name, allowed)
            told = f" (did you mean {meant!r}?)" if meant else ""
            yield f"{name!r} can't be set there{told}"


def value_fault(error: ErrorDetails, origin: Mapping[str, str]) -> str:
    """Return a sentence that says where an invalid value was set and why it is invalid.

    origin: the source of each setting's value, by the name of the setting.
    """
    name, *within = [str(part) for part in error["loc"]] or [""]
    where = ", ".join([origin.get(name, name), *([".".join(within)] if within else [])])
    return f"{where}: {error['msg'].removeprefix('Value error, ')}"


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar of the names, or None if none is similar."""
    alike = get_close_matches(name, sorted(names), n=1)
    return alike[0] if alike else None
