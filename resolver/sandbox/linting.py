"""Checks whether an edit breaks the syntax of a file.

It covers what can be checked without running anything: Python, JSON, TOML, and YAML if its parser
is installed.
"""

import ast
import importlib
import importlib.util
import json
import tomllib
import warnings
from collections.abc import Callable
from typing import Final

MAX_CHECKED: Final = 1_000_000
"""Length in characters of the longest text that is parsed after an edit."""


def broken_by(name: str, before: str | None, after: str) -> str | None:
    """Return the syntax error in `after` as one line, or None.

    None also means that `before` had an error already, or that the file is too long or of a type
    that is not checked.

    name: file name, whose extension decides the syntax.
    before: None for a file that did not exist.
    """
    check = _CHECKS.get(name.rpartition(".")[2].lower())
    if check is None or len(after) > MAX_CHECKED:
        return None
    wrong = _complaint(check, after)
    if wrong is None or (before is not None and _complaint(check, before) is not None):
        return None
    return wrong


def _complaint(check: Callable[[str], None], text: str) -> str | None:
    """Return the error that a check raises for the text, as one line; None if it raises none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(text)
    except SyntaxError as error:
        return f"line {error.lineno or 1}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error).replace("\n", " ") or type(error).__name__
    return None


def _python(text: str) -> None:
    ast.parse(text)


def _json(text: str) -> None:
    if text.strip():
        json.loads(text)


def _toml(text: str) -> None:
    tomllib.loads(text.replace("\r\n", "\n"))


def _yaml(text: str) -> None:
    if importlib.util.find_spec("yaml") is None:
        return
    yaml = importlib.import_module("yaml")
    try:
        for _ in yaml.parse(text):
            pass
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


_CHECKS: Final[dict[str, Callable[[str], None]]] = {
    "py": _python,
    "pyi": _python,
    "json": _json,
    "toml": _toml,
    "yaml": _yaml,
    "yml": _yaml,
}
