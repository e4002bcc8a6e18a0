"""Writes the parts of files that are made from the settings and from the list of starting events.

They are the inputs of the Action (action.yml, docs/action.md), the workflow to copy
(docs/action.md), `on:` and `if:` of our own workflows, and the table of events (docs/triggers.md).
The rest of these files is written by hand. A test compares the files with the result.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

from pydantic.fields import FieldInfo

from resolver import __version__
from resolver.cli.agent_workflow import CALLED_CONDITION_VALUES, job_condition, workflow_text
from resolver.config.declaration import ActionInput, setting_arguments
from resolver.config.settings import Settings
from resolver.github.events.listening import STARTING_EVENTS
from scripts.settings_docs import choices_of, format_default, format_meaning

ROOT = Path(__file__).parents[1]
WORKFLOW = workflow_text(f"OWNER/resolver@v{__version__}", "@agent", "agent", installs=False)


def action_inputs() -> Iterator[tuple[ActionInput, FieldInfo]]:
    """Yield the inputs of the Action that set a setting, each with its name and its setting."""
    for name, field in Settings.model_fields.items():
        declared = setting_arguments(field)["action_input"]
        if declared is not None:
            found = ActionInput(**declared)
            yield ActionInput(found.name or name.replace("_", "-"), found.default), field


def yaml_input(action_input: ActionInput, field: FieldInfo) -> str:
    """Return an input as action.yml declares it."""
    text = (field.description or "").replace("`", "")
    text = re.sub(r"\bSee (\w[\w-]*\.md)", r"See docs/\1", text)
    if choices := choices_of(field.annotation):
        text += f" One of: {', '.join(choices)}."
    if field.annotation == tuple[str, ...]:
        text += " Separated by commas."
    default = format_default(field).strip("`*").lower()
    if default and default != "secret" and not action_input.default:
        text += f" Default: {default}."
    lines = [
        f"  {action_input.name}:",
        "    description: >-",
        _wrapped(text),
        "    required: false",
    ]
    if action_input.default:
        lines.append(f"    default: {json.dumps(action_input.default)}")
    return "".join(f"{line}\n" for line in lines)


def _wrapped(text: str) -> str:
    margin = " " * 6
    return fill(text, 100, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)


def input_row(action_input: ActionInput, field: FieldInfo) -> str:
    """Return an input's row in docs/action.md."""
    mark = "<br>**repository**" if setting_arguments(field)["repository"] else ""
    default = "" if format_default(field) == "*secret*" else format_default(field)
    return f"| `{action_input.name}`{mark} | {default} | {format_meaning(field)} |\n"


def event_rows() -> Iterator[str]:
    """Yield the rows of the table of events in docs/triggers.md."""
    for event in STARTING_EVENTS:
        names = ", ".join(f"`{name}`" for name in event.events)
        yield f"| {names} ({event.action}) | {event.requirement} | {event.result} |\n"


def _table(*titles: str) -> str:
    """Return the first lines of a table. A comment is no part of it only with an empty line."""
    return f"\n| {' | '.join(titles)} |\n|{'---|' * len(titles)}\n"


def between(text: str, start: str, end: str, part: str) -> str:
    """Return `text` with `part` instead of what is between the first `start` and the next `end`."""
    head, found_start, rest = text.partition(start)
    _, found_end, tail = rest.partition(end)
    assert found_start and found_end, f"{start!r} and {end!r} are missing"
    return f"{head}{start}{part}{end}{tail}"


def generated_files() -> dict[str, str]:
    """Return the whole content of each file that has generated parts, by its path."""
    files = {
        path: (ROOT / path).read_text()
        for path in (
            "action.yml",
            "docs/action.md",
            "docs/triggers.md",
            ".github/workflows/agent.yml",
            ".github/workflows/resolve.yml",
        )
    }
    inputs = list(action_inputs())
    replaced = [
        ("action.yml", "inputs:\n", "  close:\n", "".join(yaml_input(*each) for each in inputs)),
        ("docs/action.md", "```yaml\n", "```", WORKFLOW),
        (
            "docs/action.md",
            "<!-- inputs -->\n",
            "<!-- end of inputs -->",
            _table("Input", "Default", "Meaning")
            + "".join(input_row(*each) for each in inputs)
            + "\n",
        ),
        (
            "docs/triggers.md",
            "<!-- events -->\n",
            "<!-- end of events -->",
            _table("Event (action)", "Requirement", "Result") + "".join(event_rows()) + "\n",
        ),
        *(
            (".github/workflows/agent.yml", start, end, _part_of(WORKFLOW, start, end))
            for start, end in (("\non:", "\npermissions:"), ("    if: >-\n", "    runs-on:"))
        ),
        (
            ".github/workflows/resolve.yml",
            "    if: >-\n",
            "    runs-on:",
            job_condition(CALLED_CONDITION_VALUES, fix_checks="all", dashboard=True) + "\n",
        ),
    ]
    for path, start, end, part in replaced:
        files[path] = between(files[path], start, end, part)
    return files


def _part_of(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


if __name__ == "__main__":
    for path, text in generated_files().items():
        (ROOT / path).write_text(text)
