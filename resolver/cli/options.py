"""Makes command-line options from the settings model, so that each setting is described once."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from resolver.config.declaration import setting_arguments
from resolver.config.settings import GROUPS, Settings
from resolver.config.templates import render

F = TypeVar("F", bound=Callable[..., Any])


FULL_HELP_COMMAND = "resolve"
"""The command whose help describes the options of the settings. Other commands only name them."""


class SettingOption(click.Option):
    """An option of a setting."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return super().get_help_record(ctx) if ctx.info_name == FULL_HELP_COMMAND else None


class SettingsCommand(click.Command):
    """A command that takes options of settings."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.info_name != FULL_HELP_COMMAND:
            with formatter.section("Settings"):
                formatter.write_text(" ".join(render("run/setting_options.txt.j2").split()))
        super().format_epilog(ctx, formatter)


def settings_options(function: F) -> F:
    """Add an option for each setting that has one.

    The value of an option that is not given is None.
    """
    return settings_options_but()(function)


def metrics_options(function: F) -> F:
    """Add the options for the port of the metrics and its address."""
    port = click.option(
        "--metrics-port",
        type=click.IntRange(0, 65535),
        help="Serve `GET /metrics` for Prometheus on this port; not at all by default.",
    )
    host = click.option(
        "--metrics-host",
        default="127.0.0.1",
        show_default=True,
        help="Address that the port of the metrics listens on.",
    )
    return port(host(function))


def lease_option(function: F) -> F:
    """Add the option for the time after which a dead process is noticed. Tests shorten it."""
    return click.option("--lease-seconds", type=click.FloatRange(min=1.0), hidden=True)(function)


def settings_options_but(*names: str) -> Callable[[F], F]:
    """Add the options as `settings_options` does, without those that the command defines itself."""

    def add(function: F) -> F:
        for name in reversed([name for group in GROUPS for name in group.model_fields]):
            field = Settings.model_fields[name]
            if setting_arguments(field)["option"] and name not in names:
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
    text = (field.description or "") + _default_text(field)
    annotation = field.annotation
    listed = partial(click.option, cls=SettingOption, help=text)
    if annotation is bool:
        return listed(f"{flag}/--no-{name.replace('_', '-')}", default=None)
    if annotation == tuple[str, ...]:
        text += " May be repeated."
        return listed(flag, multiple=True, callback=_split_values, metavar="TEXT", help=text)
    return listed(flag, type=_click_type(annotation), default=None)


def _default_text(field: FieldInfo) -> str:
    """Return the setting's default as click shows one; "" if there is none to show.

    An option that is not given has no value, so that the other sources of settings apply.
    """
    default = field.get_default(call_default_factory=True, validated_data={})
    if default is None or default == "" or default == ():
        return ""
    if isinstance(default, bool):
        default = "yes" if default else "no"
    elif isinstance(default, tuple):
        default = ", ".join(map(str, default))
    return f"  [default: {default}]"


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
