"""REST endpoints of what CI says of a commit: annotations, commit statuses, jobs and their logs.
Check runs are in routes_repository; a job has its check run's number.
"""

from datetime import datetime
from typing import Any

from tests.parts.github_server import access
from tests.parts.github_server import documents_core as core
from tests.parts.github_server.exchange import REPO, ROUTES, Answer, Call, not_found
from tests.parts.github_server.state import CheckRun, Repository, Status

Document = dict[str, Any]


def _run_of(call: Call, repository: Repository, name: str) -> CheckRun:
    id = call.number(name)
    found = next((run for run in repository.check_runs if run.id == id), None)
    if found is None:
        raise not_found()
    return found


@ROUTES.add(f"GET {REPO}/check-runs/{{check_run_id}}/annotations")
def list_annotations(call: Call) -> Answer:
    repository = access.readable(call, "checks")
    run = _run_of(call, repository, "check_run_id")
    given = (run.values.get("output") or {}).get("annotations", ())
    return call.page(given, lambda annotation: _annotation(call, repository, annotation))


def _annotation(call: Call, repository: Repository, given: Document) -> Document:
    blobs = f"{core.repository_url(call.site, repository)}/git/blobs/abc"
    empty = dict.fromkeys(("start_column", "end_column", "title", "raw_details"))
    return {"end_line": given["start_line"], **empty, **given, "blob_href": blobs}


@ROUTES.add(f"GET {REPO}/commits/{{ref}}/statuses")
def list_statuses(call: Call) -> Answer:
    repository = access.readable(call, "statuses")
    sha = repository.git.resolve(call.at["ref"])
    rows = [status for status in reversed(repository.statuses) if status.commit == sha]
    return call.page(rows, lambda status: _status(call, repository, status))


def _status(call: Call, repository: Repository, given: Status) -> Document:
    at = core.stamp(given.at)
    return {
        "url": f"{core.repository_url(call.site, repository)}/statuses/{given.commit}",
        "avatar_url": None,
        "id": given.id,
        "node_id": core.node_id("StatusContext", given.id),
        "state": given.state,
        "description": given.description,
        "target_url": given.target_url,
        "context": given.context,
        "created_at": at,
        "updated_at": at,
        "creator": core.account(call.site, repository.owner),
    }


def _job_run(call: Call, repository: Repository) -> CheckRun:
    access.may_read(call, repository, "actions")
    run = _run_of(call, repository, "job_id")
    if run.app.slug != "github-actions":
        raise not_found()
    return run


@ROUTES.add(f"GET {REPO}/actions/jobs/{{job_id}}")
def get_job(call: Call) -> Answer:
    repository = access.repository_of(call)
    run = _job_run(call, repository)
    api = core.repository_url(call.site, repository)
    page = f"{call.site.server_url}/{repository.full_name}/actions/runs/{run.id}"
    began = str(run.values["started_at"])
    return Answer(
        200,
        {
            "id": run.id,
            "run_id": run.id,
            "run_url": f"{api}/actions/runs/{run.id}",
            "node_id": core.node_id("Job", run.id),
            "head_sha": run.head_sha,
            "workflow_name": "CI",
            "head_branch": None,
            "url": f"{api}/actions/jobs/{run.id}",
            "html_url": f"{page}/job/{run.id}",
            "status": run.values["status"],
            "conclusion": run.values["conclusion"],
            "created_at": began,
            "started_at": began,
            "completed_at": run.values["completed_at"],
            "name": run.name,
            "steps": [_step(n, name, ended) for n, (name, ended) in enumerate(run.steps, 1)],
            "check_run_url": f"{api}/check-runs/{run.id}",
            "labels": ["ubuntu-latest"],
            **dict.fromkeys(("runner_id", "runner_name", "runner_group_id", "runner_group_name")),
        },
    )


def _step(number: int, name: str, conclusion: str) -> Document:
    return {"name": name, "status": "completed", "conclusion": conclusion, "number": number}


@ROUTES.add(f"GET {REPO}/actions/jobs/{{job_id}}/logs")
def get_job_log(call: Call) -> Answer:
    """Redirect to the log, which is on another host for a minute."""
    repository = access.repository_of(call)
    run = _job_run(call, repository)
    if run.log is None:
        raise not_found()
    return Answer(302, None, {"Location": f"{call.world.files_url(call.site.server_url)}{run.log}"})


def completed(moment: datetime, conclusion: str) -> Document:
    """Return the fields of a completed check run."""
    at = core.stamp(moment)
    return {"status": "completed", "conclusion": conclusion, "started_at": at, "completed_at": at}
