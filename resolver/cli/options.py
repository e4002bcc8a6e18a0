"""Makes command-line options from the settings model, so that each setting is described once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from resolver.config.declaration import extra
from resolver.config.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def settings_options(function: F) -> F:
    """Add an option for each setting that has one.

    The value of an option that is not given is None.
    """
    return settings_options_but()(function)


def settings_options_but(*names: str) -> Callable[[F], F]:
    """Add the options as `settings_options` does, without those that the command defines itself."""

    def add(function: F) -> F:
        for name, field in reversed(Settings.model_fields.items()):
            if extra(field)["option"] and name not in names:
                function = _option(name, field)(function)
        return function

    return add


def run_options(function: F) -> F:
    """Add the options of the settings, and those for a run's output."""
    function = click.option(
        "--no-publish",
        is_flag=True,
        help="Do everything except push, open a pull request and comment.",
    )(function)
    function = click.option(
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder for events.jsonl, outcome.json, patch.diff, trace.md and trace.html. "
        "Default: a new folder below ~/.local/state/resolver.",
    )(function)
    return settings_options(function)


def _option(name: str, field: FieldInfo) -> Callable[[F], F]:
    flag = f"--{name.replace('_', '-')}"
    text = field.description or ""
    if field.annotation is bool:
        return click.option(f"{flag}/--no-{name.replace('_', '-')}", default=None, help=text)
    if field.annotation == tuple[str, ...]:
        text += " May be repeated."
        return click.option(flag, multiple=True, callback=_split_values, metavar="TEXT", help=text)
    return click.option(flag, type=_click_type(field.annotation), default=None, help=text)


def _split_values(_context: click.Context, _option: click.Parameter, values: Any) -> Any:
    """Return the values of a repeated or comma-separated option, or None if it was not given."""
    return (
        tuple(part.strip() for text in values for part in text.split(",") if part.strip()) or None
    )


def _click_type(annotation: Any) -> Any:
    if get_origin(annotation) is Literal:
        return click.Choice([str(value) for value in get_args(annotation)])
    numeric_types = [t for t in (*get_args(annotation), annotation) if t in (int, float)]
    return numeric_types[0] if numeric_types else str
