"""How a run is configured from its log and from what is left of the budget, on a small clone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from resolver.agents.readonly import REVIEWER
from resolver.events.run_log import RunLog
from resolver.git.workspace import Workspace
from resolver.github.local_forge import LocalForge
from resolver.models.run import Command, TriggerKind
from resolver.runs.prepare import configure
from resolver.runs.stages import (
    AcceptedRun,
    ClonedRepository,
    PreparedRun,
    RunRequest,
    RunTask,
)
from tests.github import reports
from tests.parts.runs import make_checkout
from tests.runs.plain_values import run_log, run_request
from tests.trace import sample


class Repository:
    """A clone, and requests of a person on this machine for work on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        checkout = make_checkout(folder / "calc", {"calc.py": "x = 1\n"})
        self.workspace = Workspace.clone(str(checkout), folder / "clone.git")
        self.request = replace(
            run_request(folder),
            trigger=reports.trigger(kind=TriggerKind.LOCAL, command=Command.CONTINUE),
        )

    def configure(self, request: RunRequest, log: RunLog | None = None) -> PreparedRun:
        task = reports.task(request.trigger)
        return configure(
            AcceptedRun(),
            RunTask(request, task, log),
            ClonedRepository(task, self.workspace),
            LocalForge(self.folder / "issue.md", "main"),
            self.folder,
        )


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    """The log of a review."""
    with run_log(tmp_path / "events.jsonl") as opened:
        opened.stream.add(sample.started().model_copy(update={"agent": REVIEWER}))
        yield opened


def test_a_continued_run_has_the_agent_of_its_log(repository: Repository, log: RunLog) -> None:
    assert repository.configure(repository.request, log).settings.agent == REVIEWER
    assert repository.configure(repository.request).settings.agent == "CodeActAgent"


def test_a_run_has_the_budget_that_its_request_reserves(repository: Repository) -> None:
    request = replace(repository.request, budget=lambda _: 0.35)
    prepared = repository.configure(request)
    assert (prepared.settings.max_budget, prepared.max_cost) == (0.35, 0.35)
