"""`resolver trace`: an event log for a person."""

from pathlib import Path

import click

from resolver.events.store import read_log
from resolver.trace.html import render_html
from resolver.trace.json_view import render_json
from resolver.trace.markdown import render_markdown
from resolver.trace.text import render_text

RENDERERS = {
    "markdown": render_markdown,
    "html": render_html,
    "text": render_text,
    "json": render_json,
}


@click.command()
@click.argument("log", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(list(RENDERERS)),
    default="text",
    show_default=True,
    help="How to show it.",
)
def command(log: Path, form: str) -> int:
    """Show the event log LOG (an events.jsonl, or the output folder that holds one)."""
    path = log / "events.jsonl" if log.is_dir() else log
    click.echo(RENDERERS[form](list(read_log(path))).rstrip("\n"))
    return 0
