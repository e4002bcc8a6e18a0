"""Opens Resolver's pull requests once, requests reviews, and keeps their text up to date.

Reviewers, labels and an assignee don't affect the outcome of the run: what GitHub refuses is
reported as a note. CODEOWNERS files are read as GitHub reads them, to find the owners of changed
files. Source:
https://docs.github.com/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from github.PullRequest import PullRequest as GitHubPullRequest
from github.Repository import Repository

from resolver.config.templates import render
from resolver.errors import ForgeError, UsageError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.resources import query_graphql
from resolver.github.comments.find_or_create import (
    create_pull_request,
    describe_pull_request,
    is_own_account,
    open_pull_request_of,
    write_once,
)
from resolver.github.comments.markers import run_marker, run_of_marker
from resolver.github.comments.progress import check_result_text
from resolver.github.comments.pull_request_template import with_default_template
from resolver.github.comments.pull_request_text import (
    Drafting,
    body_is_ours,
    drafting_in,
    latest_changes_text,
    new_title,
    pull_request_body,
    pull_request_title,
    room_below,
    run_marker_of,
    tells_of,
    title_is_ours,
    with_drafting,
    with_newest,
    with_title,
)
from resolver.github.comments.report import Ending, Report
from resolver.github.text.markdown import code_span
from resolver.models.run import Actor, PullRequest

_OWNER = re.compile(r"@([A-Za-z0-9][\w-]*(?:/[A-Za-z0-9_.-]+)?)", re.ASCII)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_WORD = re.compile(r"(?:\\.|[^\\\s])+")


@dataclass(frozen=True)
class OwnerRule:
    """A line of a CODEOWNERS file: a pattern, and the logins and ORG/TEAM names of its owners.

    The owners may be empty: then nobody owns what the pattern matches.
    """

    pattern: re.Pattern[str]
    owners: tuple[str, ...]


def owners_of(codeowners: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the logins and ORG/TEAM names that own any of the files, without duplicates.

    `paths` are relative to the repository's root. The last line that matches a path decides.
    """
    rules = list(read_rules(codeowners))
    found: dict[str, str] = {}
    for path in paths:
        last = next((rule for rule in reversed(rules) if rule.pattern.fullmatch(path)), None)
        for owner in last.owners if last else ():
            found.setdefault(owner.casefold(), owner)
    return tuple(found.values())


def read_rules(codeowners: str) -> Iterator[OwnerRule]:
    """Yield the valid lines in order. Invalid lines are skipped, as GitHub does.

    An owner given by email address is left out, because reviews are requested by login, but the
    line still takes precedence over earlier ones.
    """
    for line in codeowners.splitlines():
        words = _words(line)
        if not words:
            continue
        pattern = _pattern(words[0])
        owners = [_OWNER.fullmatch(word) for word in words[1:]]
        known = (o or _EMAIL.fullmatch(w) for o, w in zip(owners, words[1:], strict=True))
        if pattern is not None and all(known):
            yield OwnerRule(pattern, tuple(owner[1] for owner in owners if owner))


def _words(line: str) -> list[str]:
    """Return the words of a line without its comment. Escaped spaces do not separate words."""
    words: list[str] = []
    for found in _WORD.finditer(line):
        if found[0].startswith("#"):
            break
        words.append(found[0])
    return words


def _pattern(text: str) -> re.Pattern[str] | None:
    """Compile a pattern; return None for negations and ranges, which GitHub does not support."""
    if text.startswith(("!", "\\#")) or "[" in text or "***" in text:
        return None
    parts = text.split("/")
    if parts[0] == "":
        del parts[0]
    elif len(parts) == 1 or parts[1:] == [""]:
        parts.insert(0, "**")  # a name alone matches at any depth
    if not any(parts):
        return re.compile(r"(?!)")
    is_folder = parts[-1] == ""
    if is_folder:
        parts[-1] = "**"
    written = "".join(_part(part, last=False) for part in parts[:-1])
    return re.compile(written + _part(parts[-1], last=True), re.DOTALL)


def _part(part: str, *, last: bool) -> str:
    """Return the regular expression for one segment of a path.

    The last segment also matches everything in a folder of that name, except for `*`, which only
    matches the folder's direct entries.
    """
    if part == "**":
        return ".+" if last else "(?:[^/]+/)*"
    if part == "*":
        return "[^/]+" if last else "[^/]+/"
    written = "".join(_characters(part))
    return f"{written}(?:/.*)?" if last else f"{written}/"


def _characters(part: str) -> Iterator[str]:
    escaped = False
    for char in part:
        if escaped or char not in "\\*?":
            yield re.escape(char)
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            yield "[^/]*" if char == "*" else "[^/]"


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


_READY = """
mutation($input: MarkPullRequestReadyForReviewInput!) {
  markPullRequestReadyForReview(input: $input) { pullRequest { isDraft } }
}
"""

_ON_PULL = frozenset({"pushed", "updated"})
"""Values of `How` for a change that is in the pull request that was worked on."""

_DRAFT = """
mutation($input: ConvertPullRequestToDraftInput!) {
  convertPullRequestToDraft(input: $input) { pullRequest { isDraft } }
}
"""


def open_pull_request(
    access: GitHubAccess, repository: Repository, own: str, report: Report, branch: str
) -> PullRequest:
    """Return the pull request from `branch`, the open one or a new one.

    Its `notes` say which reviewers, labels, assignees or draft status GitHub refused. `own` is
    Resolver's login. Raises ForgeError.
    """
    if report.task is None:
        raise UsageError("a pull request needs the task it answers", "read the issue first")
    base = report.task.base_branch
    report = with_default_template(access, report)
    title, body = pull_request_title(report), pull_request_body(report)
    what = f"open a pull request from {branch} to {base}"
    pull = write_once(
        access,
        what,
        "pull-requests: write",
        lambda: open_pull_request_of(repository, branch),
        lambda: create_pull_request(
            repository, base=base, head=branch, title=title, body=body, draft=report.draft
        ),
    )
    if not is_own_account(pull, own):
        with access.asking(what, "pull-requests: write"):
            return describe_pull_request(pull)
    notes = _brought_up(access, pull, report, own, what)
    with access.asking(what, "pull-requests: write"):
        return describe_pull_request(pull).model_copy(update={"notes": notes})


def update_pull_request(
    access: GitHubAccess, repository: Repository, own: str, report: Report, number: int
) -> PullRequest | None:
    """Update the pull request that was worked on with what is new, and return it.

    Returns None, and changes nothing, if it is not Resolver's own or not open. Raises ForgeError.
    """
    if report.how not in _ON_PULL:
        raise UsageError(
            f"#{number} does not hold what was {report.how}", "bring up the one that it is in"
        )
    what = f"bring the text of #{number} up to date"
    with access.asking(what, "pull-requests: write"):
        pull = repository.get_pull(number).complete()
    if not is_own_account(pull, own) or pull.state != "open":
        return None
    notes = _brought_up(access, pull, report, own, what)
    with access.asking(what, "pull-requests: write"):
        return describe_pull_request(pull).model_copy(update={"notes": notes})


def _brought_up(
    access: GitHubAccess, pull: GitHubPullRequest, report: Report, own: str, what: str
) -> tuple[str, ...]:
    """Update title, body, draft status and reviewers, and return notes on what GitHub refused."""
    old, was_draft = pull.body or "", bool(pull.draft)
    before = drafting_in(old, is_draft=was_draft)
    now: Drafting = before if before == "theirs" else "draft" if report.draft else ""
    with access.asking(what, "pull-requests: write"):
        title, body = brought_up(pull.title, old, report)
        body = with_drafting(body, now)
    if (pull.title, old) != (title, body):
        edit = partial(pull.edit, title=title, body=body)
        access.persistently(what, "pull-requests: write", edit)
    notes = _drafted(access, pull, draft=report.draft) if now != before else ()
    if notes:
        with access.asking(what, "pull-requests: write"):
            pull.edit(body=with_drafting(body, before))
    if not adds_to(report):
        return notes + mark(access, pull, report, own)
    became_ready = was_draft and not pull.draft
    return notes + (ask_for_reviews(access, pull, report, own) if became_ready else ())


def adds_to(report: Report) -> bool:
    """Return True if the change is an addition to a pull request that existed before."""
    return report.how in _ON_PULL | {"added"}


def brought_up(title: str, body: str, report: Report) -> tuple[str, str]:
    """Return the title and body that the pull request should have now.

    A text that a person edited is kept, and what is new is added in a folded section below it. The
    same holds for a separately requested addition, which is not the whole change; then the title
    changes only if the agent says that it covers too little.
    """
    if report.how in {"unchanged", "patch"}:
        raise UsageError("nothing was added to a pull request", "leave its text as it is")
    on_pull = report.how in _ON_PULL
    follows = report.task is not None and report.task.follows is not None and report.how == "added"
    adds = on_pull or follows
    if title_is_ours(title, body):
        title = new_title(report) or title if adds else pull_request_title(report)
        body = with_title(body, title)
    if not adds and body_is_ours(body):
        return title, pull_request_body(report)
    if (run_of_marker(body) or (0, ""))[1] == report.run or tells_of(body, report.run):
        return title, body  # the body already includes this run's text
    trigger = report.trigger
    marker = run_marker(trigger.key, Ending.PULL_REQUEST, trigger.subject, report.run)
    if on_pull:
        # On the pull request itself, keep the marker of the issue that it was opened for.
        marker = run_marker_of(body)
    new = latest_changes_text(report, room_below(body, beside=adds))
    deciding = check_result_text(report.course.newest)
    standing = render(
        "comments/_unverified.md.j2", unverified=report.unverified, deciding=deciding
    ).strip()
    changed = with_newest(body, marker, new, beside=adds, run=report.run, standing=standing)
    return title, changed


def _drafted(access: GitHubAccess, pull: GitHubPullRequest, *, draft: bool) -> tuple[str, ...]:
    """Convert the pull request to a draft or mark it as ready, and return notes on a failure."""
    what = "make the pull request a draft" if draft else "mark the pull request as ready for review"
    try:
        with access.asking(what, "pull-requests: write"):
            query_graphql(
                access, _DRAFT if draft else _READY, {"input": {"pullRequestId": pull.node_id}}
            )
            pull.update()
    except ForgeError as error:
        return (f"{error.what}. {error.next_step[:1].upper()}{error.next_step[1:]}.",)
    return ()
