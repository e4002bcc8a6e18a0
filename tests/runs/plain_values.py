"""Plain values of stages for tests that call one stage function, without a server or a sandbox."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from resolver.agents.definitions import Definitions
from resolver.config.settings import load_settings
from resolver.events.run_log import RunLog
from resolver.git.workspace import Workspace
from resolver.memory.skills.library import Library
from resolver.models.repository import Conventions
from resolver.models.run import Publication, PullRequest
from resolver.runs.output import Output
from resolver.runs.stages import ExecutedRun, PreparedRun, PublishedRun, RunRequest, StageValues
from resolver.runs.wiring.sandbox import RunHost
from tests.github import reports

PULL = PullRequest(title="Mend it", body="", number=7, url="https://github.com/octo/demo/pull/7")


def run_request(folder: Path, **environment: str) -> RunRequest:
    """Return a request in an issue of a repository on GitHub, which is not waited for.

    environment: the settings, as variables.
    """
    impatient = {"RESOLVER_PACE": '{"github_writes": 0}', **environment}
    return RunRequest(
        trigger=reports.trigger(),
        run="run-1",
        output=Output(folder / "output"),
        load_settings=lambda repository: load_settings({}, impatient, repository),
        host=RunHost(environment={}, cache=folder / "cache"),
    )


def run_log(path: Path) -> RunLog:
    """Return a new log in that file. It removes nothing from its events, all of one moment."""
    return RunLog(path, lambda event: event, lambda: reports.WHEN)


def executed_values(request: RunRequest) -> StageValues:
    """Return the values of a run whose agent has finished and made a change."""
    values = StageValues(request, request.load_settings({}))
    return replace(
        values, executed=ExecutedRun(reports.outcome(), reports.patch(), reports.commands())
    )


def published_values(values: StageValues) -> StageValues:
    """Return the values after the change became a pull request."""
    publication = Publication(branch="agent/12", commit="d" * 40, pull_request=PULL)
    return replace(values, published=PublishedRun(publication, ("A notice about the push",)))


def prepared_run(
    request: RunRequest, workspace: Workspace | None = None, **changes: Any
) -> PreparedRun:
    """Return what is known before the agent works in that workspace, or in one that isn't there."""
    workspace = workspace or Workspace(
        request.output.folder / "clone.git", "https://x/y.git", "a" * 40, "main"
    )
    values: dict[str, Any] = {
        "settings": request.load_settings({}),
        "task": reports.task(request.trigger),
        "base_committed_at": None,
        "conventions": Conventions(),
        "agents": Definitions(),
        "library": Library(),
        "max_cost": 1.0,
    }
    return PreparedRun(request=request, workspace=workspace, **{**values, **changes})
