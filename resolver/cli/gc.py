"""`resolver gc`: removes what killed runs left behind on the Docker engine and on this machine."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from resolver.config.settings import load_settings
from resolver.config.temporary_directory import abandoned_directories, remove_locked_directory
from resolver.errors import ResolverError
from resolver.runs.common import open_host
from resolver.runs.wiring.sandbox import engine_environment
from resolver.runtime.disk import remove_tree
from resolver.runtime.docker import idle_containers, remove_toolboxes
from resolver.runtime.engine import connect_engine, engine_answers, remove_container
from resolver.runtime.environment.images import KEPT, remove_old_images
from resolver.runtime.toolbox import Toolbox


@click.command()
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    default=KEPT.days,
    show_default=True,
    help="Days after which prepared images, and toolboxes of other versions, are removed.",
)
@click.pass_obj
def command(environment: Mapping[str, str], /, older_than: float) -> int:
    """Remove what killed runs left behind: containers, volumes, images and temporary folders.

    Active runs are not affected. The command is safe to run from cron.
    """
    count = 0
    for removed in _clean(environment, timedelta(days=older_than)):
        count += 1
        click.echo(f"removed {removed}")
    click.echo(f"{count} removed" if count else "nothing to remove")
    return 0


def _clean(environment: Mapping[str, str], age: timedelta) -> Iterator[str]:
    for folder in abandoned_directories(Path(tempfile.gettempdir()), os.geteuid()):
        try:
            remove_locked_directory(folder, remove_tree)
        except OSError as error:
            click.echo(f"{folder} can't be removed: {error.strerror}", err=True)
        else:
            yield f"folder {folder}"
    environment = engine_environment(load_settings({}, environment), environment)
    if not engine_answers(environment):
        click.echo("no Docker engine is available: only this machine was cleaned", err=True)
        return
    engine = connect_engine(environment)
    now = datetime.now(UTC)
    try:
        toolbox = Toolbox(open_host(environment).cache)
        for container in idle_containers(engine, now):
            remove_container(container)
            yield f"container {container.name}"
        yield from (f"image {name}" for name in remove_old_images(engine, now, age))
        yield from (f"volume {name}" for name in remove_toolboxes(engine, toolbox, now - age))
    except ResolverError as error:
        click.echo(f"{error.what}", err=True)
    finally:
        engine.close()
