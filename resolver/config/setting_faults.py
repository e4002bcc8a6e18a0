"""What is wrong with names and values of settings, in words, with what was probably meant."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches

from pydantic_core import ErrorDetails


def name_faults(
    names: Iterable[str], allowed: Collection[str], known: Collection[str]
) -> Iterator[str]:
    """Yield one sentence for each name that is not allowed. known: names of all settings; one that
    is among them is no typo."""
    for name in names:
        if name not in allowed:
            meant = None if name in known else closest_name(name, allowed)
            told = f" (did you mean {meant!r}?)" if meant else ""
            yield f"{name!r} can't be set there{told}"


def value_fault(error: ErrorDetails, origin: Mapping[str, str]) -> str:
    """Return where a wrong value was set, and why it can't be taken. origin: by the setting."""
    name, *within = [str(part) for part in error["loc"]] or [""]
    where = ", ".join([origin.get(name, name), *([".".join(within)] if within else [])])
    return f"{where}: {error['msg'].removeprefix('Value error, ')}"


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the one of the names that is most like `name`, None where none is like it."""
    alike = get_close_matches(name, sorted(names), n=1)
    return alike[0] if alike else None
