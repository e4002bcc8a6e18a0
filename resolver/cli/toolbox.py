"""`resolver toolbox`: builds the programs that the sandbox adds to any image."""

import time
from collections.abc import Mapping
from contextlib import closing

import click

from resolver.cli.options import settings_options
from resolver.config.settings import load_settings
from resolver.runs.common import open_host
from resolver.runs.wiring.sandbox import engine_environment
from resolver.runtime.engine import connect_engine, image_settings
from resolver.runtime.toolbox import Toolbox
from resolver.runtime.volume import fill_volume, volume_name


@click.group()
def command() -> None:
    """Build the toolbox: Python, IPython, bash and git that run in any Linux image."""


@command.command()
@click.option("--engine", is_flag=True, help="Copy it to the Docker engine as well.")
@settings_options
@click.pass_obj
def build(environment: Mapping[str, str], /, engine: bool, **options: object) -> int:
    """Build the toolbox from this machine's programs, unless it is cached.

    A run builds it if necessary; building it beforehand makes the first run start sooner.
    """
    start_time = time.monotonic()
    toolbox = Toolbox(open_host(environment).cache)
    archive = toolbox.archive()
    size = archive.stat().st_size / 1e6
    click.echo(f"{archive} ({size:.0f} MB, {time.monotonic() - start_time:.1f} s)")
    if engine:
        start_time = time.monotonic()
        settings = load_settings(options, environment)
        with closing(connect_engine(engine_environment(settings, environment))) as client:
            image_settings(client, settings.image)
            fill_volume(client, toolbox, settings.image)
        click.echo(f"volume {volume_name(toolbox)} ({time.monotonic() - start_time:.1f} s)")
    return 0
