"""Writes the parts of files that are made from the settings and from the list of starting events.

They are the inputs of the Action (action.yml, docs/reference/action-inputs.md), the workflow to
copy (docs/how-to/action.md), `on:`, `if:` and inputs of our own workflows, the table of events
(docs/reference/triggers.md), the tools that an agent's definition can name (docs/how-to/agents.md),
the condensers (docs/explanation/memory.md), and the address of the Action in all pages. The rest of
these files is written by hand. A test compares the files with the result.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from resolver.agents.definitions import KNOWN_TOOLS
from resolver.agents.tools.registry import REQUIRED_TOOLS
from resolver.cli.agent_workflow import (
    CALLED_CONDITION_VALUES,
    job_condition,
    workflow_text,
)
from resolver.config.agent_settings import CONDENSERS
from resolver.config.declaration import setting_arguments
from resolver.config.settings import Settings
from resolver.github.events.starting_events import STARTING_EVENTS
from scripts.canonical_reference import ACTION, with_canonical_references
from scripts.settings_docs import choices_of, format_default, format_meaning

ROOT = Path(__file__).parents[1]
AS_ABOVE = "          # The inputs that decide how the event is read, as in the step above.\n"
WORKFLOW = workflow_text(ACTION, "@agent", "agent", installs=False)


@dataclass(frozen=True)
class ActionInput:
    """An input of the Action that sets a setting."""

    name: str
    default: str | None


def action_inputs() -> Iterator[tuple[ActionInput, FieldInfo]]:
    """Yield the inputs of the Action that set a setting, each with its setting."""
    for name, field in Settings.model_fields.items():
        declared = setting_arguments(field)
        if given := declared["action_input"]:
            own_name = name.replace("_", "-") if given is True else given
            yield ActionInput(own_name, declared["input_default"]), field


def starting_inputs() -> Iterator[tuple[ActionInput, FieldInfo]]:
    """Yield the inputs of the Action that decide what starts work, who may, and who answers."""
    for action_input, field in action_inputs():
        if setting_arguments(field)["decides_start"]:
            yield action_input, field


def yaml_input(action_input: ActionInput, field: FieldInfo) -> str:
    """Return an input as action.yml declares it."""
    lines = [
        f"  {action_input.name}:",
        "    description: >-",
        _wrapped(_input_meaning(action_input, field), 6),
        "    required: false",
    ]
    if action_input.default:
        lines.append(f"    default: {json.dumps(action_input.default)}")
    return "".join(f"{line}\n" for line in lines)


def called_input(action_input: ActionInput, field: FieldInfo) -> str:
    """Return an input as the reusable workflow declares it; "" for a secret."""
    if is_secret(field):
        return ""
    lines = [
        f"      {action_input.name}:",
        "        description: >-",
        _wrapped(_input_meaning(action_input, field), 10),
        "        type: string",
    ]
    if action_input.default:
        lines.append(f"        default: {json.dumps(action_input.default)}")
    return "".join(f"{line}\n" for line in lines)


def passed_input(action_input: ActionInput, field: FieldInfo) -> str:
    """Return the line with which the reusable workflow passes an input on to the Action."""
    value = f"{'secrets' if is_secret(field) else 'inputs'}.{action_input.name}"
    if is_secret(field) and action_input.default:
        value += f" || {action_input.default.strip('${ }')}"
    return _with_line(action_input.name, value)


def is_secret(field: FieldInfo) -> bool:
    """Return True if the value of a setting is a secret."""
    return SecretStr in (field.annotation, *get_args(field.annotation))


def _with_line(name: str, value: str) -> str:
    return f"          {name}: ${{{{ {value} }}}}\n"


def _input_meaning(action_input: ActionInput, field: FieldInfo) -> str:
    text = (field.description or "").replace("`", "")
    if choices := choices_of(field.annotation):
        text += f" One of: {', '.join(choices)}."
    if field.annotation == tuple[str, ...]:
        text += " Separated by commas."
    default = format_default(field).strip("`*").lower()
    if default and default != "secret" and not action_input.default:
        text += f" Default: {default}."
    return text


def _wrapped(text: str, indentation: int) -> str:
    margin = " " * indentation
    return fill(text, 100, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)


def input_row(action_input: ActionInput, field: FieldInfo) -> str:
    """Return an input's row in docs/reference/action-inputs.md."""
    mark = "<br>**repository**" if setting_arguments(field)["repository"] else ""
    default = "" if format_default(field) == "*secret*" else format_default(field)
    return f"| `{action_input.name}`{mark} | {default} | {format_meaning(field)} |\n"


def event_rows() -> Iterator[str]:
    """Yield the rows of the table of events in docs/reference/triggers.md."""
    for event in STARTING_EVENTS:
        names = ", ".join(f"`{name}`" for name in event.events)
        yield f"| {names} ({event.action}) | {event.requirement} | {event.result} |\n"


def _table(*titles: str) -> str:
    """Return the first lines of a table. A comment is no part of it only with an empty line."""
    return f"\n| {' | '.join(titles)} |\n|{'---|' * len(titles)}\n"


def between(text: str, start: str, end: str, part: str) -> str:
    """Return `text` with `part` instead of what is between the first `start` and the next `end`.

    An `end` of "" is the end of the text.
    """
    head, found_start, rest = text.partition(start)
    _, found_end, tail = rest.partition(end) if end else (rest, "", "")
    assert found_start and bool(found_end) is bool(end), f"{start!r} and {end!r} are missing"
    return f"{head}{start}{part}{end}{tail}"


def generated_files() -> dict[str, str]:
    """Return the whole content of each file that has generated parts, by its path."""
    files = {
        path: (ROOT / path).read_text()
        for path in (
            "action.yml",
            "docs/how-to/action.md",
            "docs/how-to/agents.md",
            "docs/explanation/memory.md",
            "docs/reference/action-inputs.md",
            "docs/reference/triggers.md",
            ".github/workflows/agent.yml",
            ".github/workflows/resolve.yml",
        )
    }
    inputs = list(action_inputs())
    starting = list(starting_inputs())
    names = [f"`{action_input.name}`" for action_input, _ in starting]
    passed = "".join(passed_input(*arguments) for arguments in starting)
    replaced = [
        (
            "action.yml",
            "inputs:\n",
            "  close:\n",
            "".join(yaml_input(*action_input) for action_input in inputs),
        ),
        ("docs/how-to/action.md", "```yaml\n", "```", WORKFLOW),
        (
            "docs/how-to/agents.md",
            "| `tools` | the agent's tools, as a list or separated by commas: ",
            " (all of the run's MCP servers) |",
            ", ".join(f"`{name}`" for name in KNOWN_TOOLS if name not in REQUIRED_TOOLS),
        ),
        (
            "docs/explanation/memory.md",
            "| Name | What it removes |\n|---|---|\n",
            "\n- `recent`",
            "".join(f"| `{name}` | {removes} |\n" for name, removes in CONDENSERS.items()),
        ),
        (
            "docs/reference/action-inputs.md",
            "<!-- inputs -->\n",
            "<!-- end of inputs -->",
            _table("Input", "Default", "Meaning")
            + "".join(input_row(*action_input) for action_input in inputs)
            + "\n",
        ),
        (
            "docs/reference/triggers.md",
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
            job_condition(CALLED_CONDITION_VALUES) + "\n",
        ),
        (
            "docs/how-to/action.md",
            "<!-- inputs of close -->\n",
            "<!-- end of inputs of close -->",
            fill(f"{', '.join(names[:-1])} and {names[-1]}.", 120, break_on_hyphens=False) + "\n",
        ),
        (
            ".github/workflows/resolve.yml",
            "      # `make docs` writes these inputs from the settings that start work.\n",
            "      egress:\n",
            "".join(called_input(*arguments) for arguments in starting),
        ),
        (
            ".github/workflows/resolve.yml",
            "          llm-base-url: ${{ inputs.llm-base-url }}\n",
            "          egress:",
            passed,
        ),
        (".github/workflows/resolve.yml", AS_ABOVE, "", passed),
    ]
    for path, start, end, part in replaced:
        files[path] = between(files[path], start, end, part)
    pages = {
        str(page.relative_to(ROOT)): page.read_text()
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    }
    return files | {
        path: with_canonical_references(files.get(path, text)) for path, text in pages.items()
    }


def _part_of(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


if __name__ == "__main__":
    for path, text in generated_files().items():
        (ROOT / path).write_text(text)
