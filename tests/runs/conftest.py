"""The scenario that most whole runs begin with."""

from collections.abc import Iterator

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine
from tests.runs.scenario import Scenario


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
