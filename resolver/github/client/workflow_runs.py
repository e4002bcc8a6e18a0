"""What GitHub knows of a run of GitHub Actions.

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
    created_at: AwareDatetime


def asked_at(access: GitHubAccess, repository: Repository, run: str) -> datetime | None:
    """When the event was that the run `run` (GITHUB_RUN_ID) is for, whichever attempt it is; None
    where that can't be seen. The job begins later: it may wait for a runner, and for other jobs."""
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
