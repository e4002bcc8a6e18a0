"""Adds reviewers, labels and an assignee to a new pull request.

None of this affects the outcome of the run: what GitHub refuses is reported as a note.
"""

from collections.abc import Callable, Sequence

from github.PullRequest import PullRequest as GitHubPullRequest

from resolver.config.templates import render
from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.comments.codeowners import owners_of
from resolver.github.comments.report import Report
from resolver.github.text.escape import code_span
from resolver.models.run import Actor

MOST_REVIEWERS = 15
MOST_LABELS = 100


def mark(
    access: GitHubAccess, pull: GitHubPullRequest, report: Report, own: str
) -> tuple[str, ...]:
    """Add labels, assignee and reviewers as the settings say, and return notes on refusals.

    `own` is the login that opened the pull request and so cannot review it. What is already there
    is not requested again, and no reviews are requested for a draft.
    """
    told: list[str] = []
    labels = [label for label in report.wishes.labels if label.strip()][:MOST_LABELS]
    there = {label.name.casefold() for label in pull.labels}
    missing = [label for label in labels if label.casefold() not in there]
    _try(access, "labels", missing, lambda names: pull.add_to_labels(*names), told)
    asker = _person(report.trigger.actor, own) if report.wishes.assign_requester else ""
    if asker.casefold() not in {"", *(each.login.casefold() for each in pull.assignees)}:
        _try(access, "assign", [asker], lambda names: pull.add_to_assignees(*names), told)
    return (*told, *ask_for_reviews(access, pull, report, own))


def ask_for_reviews(
    access: GitHubAccess, pull: GitHubPullRequest, report: Report, own: str
) -> tuple[str, ...]:
    """Request the reviews only, unless the pull request is a draft. The rest is as in `mark`."""
    told: list[str] = []
    if not pull.draft:
        _ask(access, pull, _reviewers(pull, report, own), told)
    return tuple(told)


def _person(actor: Actor, own: str) -> str:
    """Return the requester's login, "" if it is a bot or Resolver's own account."""
    is_known = actor.login and not actor.is_bot and not actor.login.endswith("[bot]")
    return actor.login if is_known and actor.login.casefold() != own.casefold() else ""


def _reviewers(pull: GitHubPullRequest, report: Report, own: str) -> list[str]:
    """Return the logins and ORG/TEAM names to request reviews from that are not requested yet."""
    wanted: list[str] = []
    if "requester" in report.wishes.reviewers:
        wanted.append(_person(report.trigger.actor, own))
    if "codeowners" in report.wishes.reviewers:
        files = report.patch.files if report.patch else ()
        wanted += owners_of(report.conventions.codeowners, (file.path for file in files))
    organization = pull.base.repo.full_name.split("/", 1)[0].casefold()
    asked = {each.login.casefold() for each in pull.requested_reviewers}
    asked |= {f"{organization}/{each.slug.casefold()}" for each in pull.requested_teams}
    asked |= {own.casefold(), ""}
    chosen: dict[str, str] = {}
    for name in wanted:
        key = name.casefold()
        is_here = "/" not in key or key.startswith(f"{organization}/")
        if is_here and key not in asked:
            chosen.setdefault(key, name)
    return list(chosen.values())[:MOST_REVIEWERS]


def _ask(
    access: GitHubAccess, pull: GitHubPullRequest, names: Sequence[str], told: list[str]
) -> None:
    """Request all reviews in one call, or one by one if GitHub refuses that.

    GitHub refuses the whole call if a single name is not acceptable.
    """
    refused: list[str] = []
    _try(access, "review", names, lambda asked: _request(pull, asked), refused)
    if refused and len(names) > 1:
        refused.clear()
        for name in names:
            _try(access, "review", [name], lambda asked: _request(pull, asked), refused)
    told.extend(refused)


def _request(pull: GitHubPullRequest, names: Sequence[str]) -> None:
    people = [name for name in names if "/" not in name]
    teams = [name.partition("/")[2] for name in names if "/" in name]
    sent = {"reviewers": people} if people else {}
    sent |= {"team_reviewers": teams} if teams else {}
    pull.requester.requestJsonAndCheck("POST", f"{pull.url}/requested_reviewers", input=sent)


def _try(
    access: GitHubAccess,
    what: str,
    names: Sequence[str],
    write: Callable[[Sequence[str]], object],
    told: list[str],
) -> None:
    if not names:
        return
    try:
        with access.asking(f"mark the pull request ({what})", "pull-requests: write"):
            write(names)
    except ForgeError as error:
        shown = ", ".join(code_span(name) for name in names)
        words = render("run/not_marked.md.j2", what=what, names=shown, error=error)
        told.append(" ".join(words.split()))
