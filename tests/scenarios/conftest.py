"""A town of its own for each story."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.scenarios.town import Town


@pytest.fixture
def town(
    github: GitHubServer,
    model_endpoint: ModelEndpoint,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Town]:
    """Its parameter: settings of the server."""
    made = Town(github, model_endpoint, tmp_path, **getattr(request, "param", {}))
    yield made
    made.close()
