"""Reports the verification of a commit as a check run, with annotations at failing tests.

Only GitHub Apps may create check runs, an Action's token included.

Source: https://docs.github.com/en/rest/checks/runs
"""

from collections.abc import Iterator
from typing import Any

from github.Repository import Repository

from resolver.github.client.access import GitHubAccess
from resolver.github.comments.comment_text import LEVELS
from resolver.github.comments.report import Report
from resolver.github.comments.templates import render_comment
from resolver.github.comments.verification_text import verification_values
from resolver.github.text.comment_markdown import MAX_BODY
from resolver.github.text.markdown import shorten_text, visible
from resolver.models.verification import CaseResult, Verification

NAME = "Resolver"
"""Name of the check run."""

MAX_ANNOTATIONS = 50
"""Maximum number of annotations; GitHub accepts no more in one request."""


def publish_check_run(
    access: GitHubAccess, repository: Repository, report: Report, commit: str
) -> None:
    """Create the check run of the commit, unless this run has created it. Raises ForgeError."""
    verification, values = report.verification, verification_values(report, LEVELS[1].output)
    if verification is None or values["verification"] is None:
        return
    what, permission = f"create a check run for {commit[:12]}", "checks: write"
    with access.wrap_errors(what, permission):
        found = repository.get_commit(commit).get_check_runs(check_name=NAME)
        if any(check_run.external_id == report.run for check_run in found):
            return
        summary = render_comment("check_run.md.j2", **values).strip()
        output: dict[str, Any] = {
            "title": _TITLES.get(verification.verdict, "Not verified"),
            "summary": shorten_text(summary, MAX_BODY),
        }
        if annotations := list(_annotations(verification)):
            output["annotations"] = annotations
        repository.create_check_run(
            NAME,
            commit,
            external_id=report.run,
            status="completed",
            conclusion=_conclusion(verification),
            output=output,
        )


_TITLES = {"verified": "Verified", "checked": "Checked"}


def _conclusion(verification: Verification) -> str:
    """Return a conclusion that blocks nothing unless the change breaks a check."""
    if verification.is_ready:
        return "success"
    return "failure" if verification.breaks_checks else "neutral"


def _annotations(verification: Verification) -> Iterator[dict[str, Any]]:
    """Yield an annotation for each failing test whose place is known."""
    failed = [
        case
        for check in verification.checks
        for case in check.head.cases
        if case.has_failed and case.file and case.line > 0
    ]
    # Tests that the change breaks come first.
    broken = {name for check in verification.checks for name in check.broken}
    failed.sort(key=lambda case: case.id not in broken)
    for case in failed[:MAX_ANNOTATIONS]:
        yield _annotation(case)


def _annotation(case: CaseResult) -> dict[str, Any]:
    message = visible(case.message).strip() or case.status
    return {
        "path": case.file,
        "start_line": case.line,
        "end_line": case.line,
        "annotation_level": "failure",
        "title": shorten_text(" ".join(visible(case.id).split()), 200),
        "message": shorten_text(message, 2_000),
    }
