"""A town of its own for each story."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.scenarios.town import Town


@pytest.fixture
def town(github: GitHubServer, model_endpoint: ModelEndpoint, tmp_path: Path) -> Iterator[Town]:
    made = Town(github, model_endpoint, tmp_path)
    yield made
    made.close()
