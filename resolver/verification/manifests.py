"""Says whether a changed manifest may change which tests run, or how.

A manifest is compared as parsed values, without its dependencies and its version. What is left
differs, or the format can't be parsed: a person must look at it. A dependency may change only to
another version from a registry; a path or an address may put anything in a test runner's place.
"""

import configparser
import json
import tomllib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import cast

_VALUES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "pyproject.toml": (
        ("project.dependencies", "project.optional-dependencies", "dependency-groups",
         "tool.poetry.dependencies", "tool.poetry.group", "tool.poetry.dev-dependencies"),
        ("project.version", "project.requires-python", "tool.poetry.version"),
    ),
    "Cargo.toml": (
        ("dependencies", "dev-dependencies", "build-dependencies", "workspace.dependencies"),
        ("package.version", "workspace.package.version"),
    ),
    "setup.cfg": (
        ("options.install_requires", "options.extras_require"),
        ("metadata.version", "options.python_requires"),
    ),
    "package.json": (
        ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"),
        ("version", "engines"),
    ),
}  # fmt: skip
"""Where the dependencies and the versions are in the manifests that are parsed, by their names."""

_ELSEWHERE = (":", "/", "@")
"""Characters of a dependency that comes from a path, an address, or under another name."""

Values = dict[str, object]


def may_change_tests(path: str, old: bytes | None, new: bytes | None) -> bool:
    """Return True unless the manifests differ in versions and registry dependencies alone.

    old, new: content without the change and with it; None where there is none.
    """
    name = PurePosixPath(path).name
    if name not in _VALUES:
        return old != new
    try:
        before, after = _parse(name, old), _parse(name, new)
    except (ValueError, configparser.Error, RecursionError):
        return True
    dependencies, versions = _VALUES[name]
    for key in dependencies:
        known = set(_texts(_take(before, key)))
        added = set(_texts(_take(after, key))) - known
        if any(mark in text.partition(";")[0] for text in added for mark in _ELSEWHERE):
            return True
    for key in versions:
        _take(before, key)
        _take(after, key)
    return before != after


def _parse(name: str, content: bytes | None) -> Values:
    text = (content or b"").decode("utf-8")
    if name.endswith(".json"):
        value = json.loads(text) if text.strip() else {}
    elif name.endswith(".cfg"):
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_string(text)
        value = {section: dict(parser.items(section)) for section in parser.sections()}
    else:
        value = tomllib.loads(text)
    if not isinstance(value, dict):
        raise ValueError(name)
    return cast("Values", value)


def _take(values: Values, key: str) -> object:
    """Remove the value of a dotted key, and tables that are empty without it; return the value."""
    if key in values:  # a section of an INI file has a dot in its name
        return values.pop(key)
    first, _, rest = key.partition(".")
    inner = values.get(first)
    if not rest or not isinstance(inner, dict):
        return None
    value = _take(cast("Values", inner), rest)
    if not inner:
        values.pop(first)
    return value


def _texts(value: object) -> list[str]:
    """Return the versions of dependencies, as texts that include what else is said of them.

    The names of the dependencies are the keys of a table, or a part of the text.
    """
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in _texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _texts(inner)]
    return str(value).splitlines() if value is not None else []
