"""Tests of the options that are made of settings."""

from typing import Any

import click

from resolver.cli.options import settings_options
from resolver.config.settings import Settings, load_settings


def settings_of(*args: str, **environment: str) -> Settings:
    """The settings of a command with these options."""

    @click.command()
    @settings_options
    def command(**options: Any) -> Settings:
        return load_settings(options, environment, {})

    settings: Settings = command.main(args, standalone_mode=False)
    return settings


def test_a_setting_that_is_a_switch_can_be_turned_off_on_the_command_line() -> None:
    assert settings_of(RESOLVER_VERIFY="true").verify
    assert not settings_of("--no-verify", RESOLVER_VERIFY="true").verify
    assert settings_of("--verify", RESOLVER_VERIFY="false").verify
