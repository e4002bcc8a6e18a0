"""Read workflow runs of GitHub Actions.

Source: https://docs.github.com/en/rest/actions/workflow-runs#get-a-workflow-run
"""

import logging
from datetime import datetime

from github.Repository import Repository
from pydantic import AwareDatetime, BaseModel, ValidationError

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess

logger = logging.getLogger("resolver.github")


class _Run(BaseModel):
    """A workflow run."""

    created_at: AwareDatetime


def asked_at(access: GitHubAccess, repository: Repository, run: str) -> datetime | None:
    """Return the time of the event that started a workflow run, or None when it can't be read.

    The time is the same for every attempt of the run. The job itself begins later: it may wait for
    a runner and for other jobs. `run` is the value of GITHUB_RUN_ID.
    """
    if not run.isdecimal():
        return None
    path = f"{repository.url}/actions/runs/{run}"
    try:
        with access.asking("read when the workflow was started", "actions: read"):
            _, found = repository.requester.requestJsonAndCheck("GET", path)
            return _Run.model_validate(found).created_at
    except (ForgeError, ValidationError) as error:
        logger.info("when it was asked for is not known: %s", error)
        return None
