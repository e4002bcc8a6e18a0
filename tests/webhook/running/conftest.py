"""One running server for all tests of a module.

The module's `SETTINGS` and `PLANS`, if it has them, are the server's settings and the model's
answers by the title of the issue.
"""

from collections.abc import Iterator

import pytest

from tests.parts.github import GitHubServer, github_server
from tests.parts.model_endpoint import ModelEndpoint
from tests.webhook.serving import Forge, Plans, Server


@pytest.fixture(scope="module")
def github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHubServer]:
    with github_server(tmp_path_factory.mktemp("github")) as running:
        yield running
        running.validate_everything()


@pytest.fixture(scope="module")
def forge(github: GitHubServer) -> Forge:
    return Forge(github)


@pytest.fixture(scope="module")
def plans(request: pytest.FixtureRequest) -> Iterator[Plans]:
    with ModelEndpoint() as endpoint:
        made = Plans(endpoint)
        for name, answers in getattr(request.module, "PLANS", {}).items():
            made.add(name, *answers)
        yield made


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory,
    forge: Forge,
    plans: Plans,
    request: pytest.FixtureRequest,
) -> Iterator[Server]:
    settings = getattr(request.module, "SETTINGS", {})
    started = Server(tmp_path_factory.mktemp("serve"), forge, plans.endpoint, **settings)
    started.start("--metrics-port", "0")
    yield started
    started.close()
    started.check()
