"""`resolver trace`: renders an event log, or prints its JSON schema."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

from resolver.config.templates import render
from resolver.errors import LogError, UsageError
from resolver.events.log import Event, ends_with_newline
from resolver.events.schema import log_schema
from resolver.runs.output import read_diff
from resolver.storage.earlier_runs import PATCH
from resolver.storage.log_location import log_file, open_log
from resolver.trace.html import render_html, render_json
from resolver.trace.markdown import render_markdown
from resolver.trace.outline import has_exported_change
from resolver.trace.plain import for_terminal
from resolver.trace.text import render_text

RENDERERS: dict[str, Callable[[Sequence[Event]], str]] = {
    "text": render_text,
    "json": render_json,
}

FORMATS = ("markdown", "html", *RENDERERS)


@click.command()
@click.argument("log", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option("--schema", is_flag=True, help="Print the JSON schema of a log's lines instead.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="File to write instead of standard output.",
)
@click.pass_obj
def command(
    environment: Mapping[str, str], /, log: str | None, form: str, schema: bool, output: Path | None
) -> int:
    """Show the event log LOG.

    LOG is an events.jsonl, the output folder that holds one, or a run in the store of a server
    (FOLDER/RUN, s3://BUCKET/PREFIX/RUN). A damaged log is shown up to the damage.
    """
    if schema:
        write_text(json.dumps(log_schema(), indent=2), output)
        return 0
    if log is None:
        raise UsageError(
            "no log is given", "pass an events.jsonl, or the output directory of a run"
        )
    write_text(_render(log, form, environment).rstrip("\n"), output)
    return 0


def write_text(text: str, output: Path | None) -> None:
    """Print a text, or write it into a file. A new file is readable for its owner only."""
    if output is None:
        click.echo(text)
        return
    try:
        output.touch(mode=0o600)
        output.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{output} can't be written: {error.strerror}", "give a file in an existing folder"
        ) from error


def _render(log: str, form: str, environment: Mapping[str, str]) -> str:
    """Return the trace in a format. Markdown and HTML show the change that lies next to the log."""
    events, damage = _read_to_damage(log, environment)
    notices = [damage] if damage else []
    if damage:
        click.echo(for_terminal(damage), err=True)
    if form in RENDERERS:
        return RENDERERS[form](events)
    diff = read_diff(log_file(log).parent / PATCH)
    if has_exported_change(events) and not diff:
        notices.append(render("trace/no_diff.txt.j2").strip())
    if form == "html":
        return render_html(events, notices=notices, diff=diff)
    return render_markdown(events, diff, notices)


def _read_to_damage(log: str, environment: Mapping[str, str]) -> tuple[list[Event], str | None]:
    """Return the events of a log, and a notice of the damage that ends it, None if it is intact.

    Raises LogError if no event can be read.
    """
    events: list[Event] = []
    try:
        for event in open_log(log, environment):
            events.append(event)
    except LogError as error:
        if not events:
            raise
        return events, render("trace/damaged.txt.j2", count=len(events), what=error.what).strip()
    if log_file(log).exists() and not ends_with_newline(log_file(log)):
        return events, render("trace/damaged.txt.j2", count=len(events), what="").strip()
    return events, None
