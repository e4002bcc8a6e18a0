"""The scenario that most whole runs begin with, and the values of stages without one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resolver.events.run_log import RunLog
from resolver.runs.stages import StageValues
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine
from tests.runs.plain_values import executed_values, run_log, run_request
from tests.runs.scenario import Scenario
from tests.trace import sample


@pytest.fixture
def scenario(
    github: GitHubServer,
    command_line: CommandLine,
    model_endpoint: ModelEndpoint,
    request: pytest.FixtureRequest,
) -> Iterator[Scenario]:
    """A scenario of the module's class `SCENARIO`. No file of the run contains its token."""
    kind: type[Scenario] = getattr(request.module, "SCENARIO", Scenario)
    made = kind(github, command_line, model_endpoint)
    yield made
    written = b"".join(p.read_bytes() for p in command_line.folder.rglob("*") if p.is_file())
    assert made.token.encode() not in written, "the token was written to a file"


@pytest.fixture
def values(tmp_path: Path) -> StageValues:
    """The values of a run whose agent has finished and made a change."""
    return executed_values(run_request(tmp_path))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    """The log of a run that has just begun."""
    with run_log(tmp_path / "events.jsonl") as opened:
        opened.stream.add(sample.started())
        yield opened
