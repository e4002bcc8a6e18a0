"""Writes the reference pages that are made from the code: the command line, outcome.json and
the server's metrics. A test compares the files with the result."""

import re
from collections.abc import Callable, Iterator
from inspect import cleandoc
from pathlib import Path

import click
from prometheus_client.metrics_core import Metric

from resolver.cli.main import COMMANDS, cli
from resolver.entrypoints.webhook.metrics import REGISTRY, QueueCollector
from resolver.entrypoints.webhook.request_queue import Backlog
from resolver.runs.outcome_file import OutcomeFile
from scripts.events_docs import describe_type, format_table
from scripts.settings_docs import link_pages, origin_note

ROOT = Path(__file__).parents[1]

CLI_HEAD = """# The command line

`resolver COMMAND --help` prints the same.

Many options set a setting; [settings.md](settings.md) tells how they combine with variables and
files. An error is two lines on stderr: what is wrong, and what to do next.

| Exit code | Meaning |
|---|---|
| 0 | done |
| 1 | an error |
| 2 | a setting or an argument is wrong |
| 3 | finished without a change |
| 4 | a limit was reached, or nobody was there to answer the agent's question |
| 5 | refused by permission or policy |

"""

OUTCOME_HEAD = """# outcome.json

Each run writes `outcome.json` into its output folder: the result of the run for programs.

    jq -r '"\\(.state): \\(.reason)"' outcome.json

Field names are stable, and every field is always present: null or empty if the run did not get that
far. New fields may be added. `format` rises when the meaning of a field changes.

## Fields
"""

METRICS_HEAD = """# Metrics

    resolver serve --metrics-port 9464
    curl http://127.0.0.1:9464/metrics

The server's metrics are in the format of Prometheus. No label names a repository, an issue or a
person. Counters begin at 0 when the server starts.
[server.md](../how-to/server.md#watch-the-server) says how to serve them, and what to alert on.

| Metric | Type | Labels | Meaning |
|---|---|---|---|
"""


def cli_page() -> str:
    """Return the page of the commands and their options."""
    lines = [
        f"| [`resolver {name}`](#resolver-{name}) | {text} |" for name, text in COMMANDS.items()
    ]
    table = "\n".join(["| Command | Use |", "|---|---|", *lines, ""])
    return CLI_HEAD + table + "".join(_command_sections(cli, click.Context(cli), "resolver"))


def _command_sections(group: click.Group, context: click.Context, path: str) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        full_name = f"{path} {name}"
        level = "#" * (1 + len(full_name.split()) - 1)
        own_context = click.Context(command, info_name=full_name)
        usage = " ".join(command.collect_usage_pieces(own_context))
        yield f"\n{level} {full_name}\n\n    {full_name} {usage}\n\n{_help_text(command)}\n"
        yield _option_table(command)
        if isinstance(command, click.Group):
            yield from _command_sections(command, own_context, full_name)


def _help_text(command: click.Command) -> str:
    """Return the help of a command as markdown: a block that click does not wrap is code."""
    paragraphs = cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(_paragraph(paragraph) for paragraph in paragraphs)


def _paragraph(text: str) -> str:
    if text.startswith("\b"):
        lines = text.removeprefix("\b").strip("\n").splitlines()
        return "\n".join(f"    {line}" for line in lines)
    lines = text.splitlines()
    if len(lines) > 1 and all(line.startswith("  ") for line in lines[1:]):
        return "\n".join([lines[0], "", *(f"    {line.strip()}" for line in lines[1:])])
    return text.replace("|", "\\|") if text.startswith("|") else text


def _option_table(command: click.Command) -> str:
    rows = []
    for parameter in command.params:
        if not isinstance(parameter, click.Option) or parameter.hidden:
            continue
        names = "<br>".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        value = "" if parameter.is_flag else f" {parameter.make_metavar(click.Context(command))}"
        text = link_pages(" ".join((parameter.help or "").split()).replace("|", "\\|"))
        default = parameter.default
        shown = parameter.show_default and isinstance(default, (int, float, str)) and default != ""
        if shown and not parameter.is_flag:
            text += f" [default: {default}]"
        rows.append(f"| {names}{value.replace('|', chr(92) + '|')} | {text} |\n")
    return "".join(["\n| Option | Meaning |\n|---|---|\n", *rows]) if rows else ""


def outcome_page() -> str:
    """Return the page of the fields of outcome.json, and of the values in them."""
    schema = OutcomeFile.model_json_schema()
    fields = [
        f"| `{name}` | {describe_type(field)} | {field.get('description', '')} |\n"
        for name, field in schema["properties"].items()
    ]
    parts = [OUTCOME_HEAD, "\n| Field | Type | Meaning |\n|---|---|---|\n", *fields]
    parts.append("\n## Values in fields\n")
    for name, definition in schema["$defs"].items():
        values = [f"`{value}`" for value in definition.get("enum", ())]
        one_of = f" One of {', '.join(values)}." if values else ""
        parts.append(f"\n### {name}\n\n{definition.get('description', '')}{one_of}\n")
        parts.append(format_table(definition, set()))
    return "".join(parts)


def metrics_page() -> str:
    """Return the page of the server's metrics."""
    labels = {
        name: ", ".join(f"`{label}`" for label in getattr(collector, "_labelnames", ()))
        for name, collector in getattr(REGISTRY, "_names_to_collectors").items()  # noqa: B009
    }
    collected = [*REGISTRY.collect(), *QueueCollector(Backlog).collect()]
    families = {family.name: family for family in collected}
    return METRICS_HEAD + "".join(
        f"| `{_exposed_name(family)}` | {family.type} | {_labels(family, labels)} "
        f"| {family.documentation} |\n"
        for _, family in sorted(families.items())
    )


def _exposed_name(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else family.name


def _labels(family: Metric, names: dict[str, str]) -> str:
    values: dict[str, set[str]] = {}
    for sample in family.samples:
        for label, value in sample.labels.items():
            values.setdefault(label, set()).add(value)
    values.pop("le", None)
    if not values:
        return names.get(family.name, "")
    return "<br>".join(
        f"`{label}`: {', '.join(f'`{value}`' for value in sorted(found))}"
        for label, found in values.items()
    )


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "outcome.md": outcome_page,
    "metrics.md": metrics_page,
}
"""The function that returns each page, by its name in docs/reference."""


def reference_pages() -> dict[str, str]:
    """Return the content of each page, by its path."""
    return {
        f"docs/reference/{name}": re.sub(r"[ \t]+$", "", page(), flags=re.MULTILINE)
        + origin_note("the code")
        for name, page in PAGES.items()
    }


if __name__ == "__main__":
    for path, text in reference_pages().items():
        (ROOT / path).write_text(text)
