"""The door of the GitHub Action: the event that started the job, and the runner's files.

Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from resolver.doors import github_forge, host_of, run_id, stop_on_signals
from resolver.errors import UsageError
from resolver.model import Trigger
from resolver.output import Output
from resolver.pipeline import Job, Record, resolve
from resolver.result import print_result
from resolver.settings import load_settings
from resolver.templates import render
from resolver.trace.progress import Progress
from resolver.triggers.parse import Ignored, parse_event

OUTPUT = "resolver-output"
"""Folder in the job's workspace; a later step can upload it."""

SUMMARY_LIMIT = 1_000_000
"""A step summary may have 1 MiB."""


def run_action(environment: Mapping[str, str], console: Console) -> int:
    """Do what the job's event asks for; the exit code. Raises UsageError for a broken set-up."""
    settings = load_settings({}, environment)
    name, payload = read_event(environment)
    trigger = parse_event(
        name,
        payload,
        mention=settings.mention,
        label=settings.label,
        bot_login=settings.bot_login,
        allowed_users=settings.allowed_users,
    )
    if isinstance(trigger, Ignored):
        console.print(f"Nothing to do: {trigger.reason}.", markup=False, soft_wrap=True)
        write_outputs(environment, {"state": "ignored"})
        return 0
    workspace = Path(environment.get("GITHUB_WORKSPACE", "."))
    job = Job(
        trigger=trigger,
        run=run_id(trigger.key, trigger.at),
        output=Output(workspace / OUTPUT),
        load=lambda repository: load_settings({}, environment, repository),
        host=host_of(environment),
        progress=Progress(console),
        log_url=job_url(environment, trigger),
    )
    with stop_on_signals():
        record = resolve(job, github_forge(settings, trigger.repository))
    print_result(record, console)
    write_outputs(environment, outputs_of(record))
    write_summary(environment, record)
    return record.exit_code


def read_event(environment: Mapping[str, str]) -> tuple[str, Mapping[str, Any]]:
    """Name and payload of the event. Raises UsageError outside of a GitHub Actions job."""
    name, path = environment.get("GITHUB_EVENT_NAME", ""), environment.get("GITHUB_EVENT_PATH", "")
    if not name or not path:
        raise UsageError(
            "GITHUB_EVENT_NAME and GITHUB_EVENT_PATH are not set",
            "run this in a GitHub Actions job, or use `resolver resolve OWNER/NAME#N`",
        )
    try:
        payload = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"the event {path} can't be read: {error}", "check the workflow") from None
    if not isinstance(payload, dict):
        raise UsageError(f"the event {path} is not a JSON object", "check the workflow")
    return name, payload


def job_url(environment: Mapping[str, str], trigger: Trigger) -> str:
    """The page of the job's run, "" when it is not known."""
    server, run = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_RUN_ID", "")
    return f"{server}/{trigger.repository}/actions/runs/{run}" if server and run else ""


def outputs_of(record: Record) -> dict[str, str]:
    """The Action's outputs, as action.yml names them."""
    publication, outcome = record.publication, record.outcome
    pull = publication.pull_request
    summary = record.summary()
    return {
        "state": summary["state"],
        "branch": publication.branch or "",
        "pull-request-number": str(pull.number) if pull and pull.number else "",
        "pull-request-url": (pull.url or "") if pull else "",
        "cost": f"{outcome.cost:.4f}" if outcome and outcome.cost is not None else "",
        "iterations": str(outcome.iterations if outcome else 0),
        "output": OUTPUT,
    }


def write_outputs(environment: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    """Append to the runner's GITHUB_OUTPUT. A value is one line: a line break would add outputs."""
    path = environment.get("GITHUB_OUTPUT")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(f"{n}={' '.join(v.split())}\n" for n, v in outputs.items())


def write_summary(environment: Mapping[str, str], record: Record) -> None:
    """Append the run's report to the runner's GITHUB_STEP_SUMMARY."""
    path = environment.get("GITHUB_STEP_SUMMARY")
    if path:
        text = render("run/summary.md.j2", record=record, report=record.report())
        with open(path, "a", encoding="utf-8") as file:
            file.write(text[:SUMMARY_LIMIT])
