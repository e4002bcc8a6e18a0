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
    return call.page(given, _annotation)


def _annotation(given: Document) -> Document:
    return {"end_line": given["start_line"], "title": None, **given}


@ROUTES.add(f"GET {REPO}/commits/{{ref}}/statuses")
def list_statuses(call: Call) -> Answer:
    repository = access.readable(call, "statuses")
    sha = repository.git.resolve(call.at["ref"])
    rows = [status for status in reversed(repository.statuses) if status.commit == sha]
    return call.page(rows, _status)


def _status(given: Status) -> Document:
    return {
        "id": given.id,
        "state": given.state,
        "description": given.description,
        "target_url": None,
        "context": given.context,
        "created_at": core.stamp(given.at),
        "updated_at": core.stamp(given.at),
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
    document = {
        "id": run.id,
        "head_sha": run.head_sha,
        "workflow_name": "CI",
        "name": run.name,
        "steps": [_step(n, name, ended) for n, (name, ended) in enumerate(run.steps, 1)],
    }
    return Answer(200, document)


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
