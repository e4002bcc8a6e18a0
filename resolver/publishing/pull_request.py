"""Publishes a change: makes the commit, pushes the branch, opens or updates the pull request."""

import logging
import time
from collections.abc import Iterator

from resolver.config.templates import render
from resolver.errors import ForgeError, PushRefused
from resolver.git.merge import is_ancestor
from resolver.git.push import PREFIX, fetch_tip
from resolver.github.comments.pull_request_text import pull_request_body, pull_request_title
from resolver.github.comments.report import Report
from resolver.github.forge import Forge
from resolver.github.github_forge import ACTIONS_LOGIN
from resolver.models.run import Publication, PullRequest, TriggerKind
from resolver.publishing.branches import (
    advance_branch,
    apply_to_branch,
    change_since,
    create_branch,
)
from resolver.publishing.commit_builder import (
    CommitBuilder,
    PlannedChange,
    PublishRequest,
    PushedChange,
)
from resolver.publishing.push_to_pull_request import BranchUnavailable, publish_on_pull
from resolver.publishing.update_branch import publish_merge

logger = logging.getLogger("resolver.publishing")


def report_pending_checks(publication: Publication, forge: Forge) -> tuple[str, ...]:
    """Return a warning if GitHub starts no workflow for the published change.

    GitHub starts none for a push with the token of a job, so that workflows don't trigger
    themselves.

    Source: https://docs.github.com/en/actions/concepts/security/github_token
    """
    if publication.branch and not publication.repeated and forge.whoami() == ACTIONS_LOGIN:
        return (render("run/no_checks.md.j2").strip(),)
    return ()


def publish_verification(publication: Publication, report: Report, forge: Forge) -> None:
    """Create a check run on the published commit.

    Without the permission for it there is none. The pull request shows the same.
    """
    if publication.commit is None or publication.repeated or publication.repository:
        return
    if publication.how in {"patch", "unchanged"} or report.verification is None:
        return
    try:
        forge.publish_check_run(report, publication.commit)
    except ForgeError as error:
        logger.info("%s", error.what)


def describe_unpublished(request: PublishRequest) -> Publication:
    """Return the title and text of a pull request, for a run that publishes nothing."""
    title, body = pull_request_title(request.report), pull_request_body(request.report)
    return Publication(pull_request=PullRequest(title=title, body=body))


def publish(making: CommitBuilder) -> Iterator[Publication]:
    """Commit, push and open the pull request; yield what is public after each step.

    If a step fails, the caller still knows what the steps before it have published. Each step
    recognizes what an earlier attempt of the run has already done.
    """
    started = time.monotonic()
    if making.workspace.pull is None:
        pushed = _add(making) or _new(making)
    elif making.workspace.pull.conflicts:
        pushed = publish_merge(making)
    else:
        pushed = publish_on_pull(making)
    yield from propose(making, pushed, started)


def propose(
    making: CommitBuilder, pushed: PushedChange, started: float, *, describes: bool = True
) -> Iterator[Publication]:
    """Open the pull request of a pushed change, or update the text of the one it was pushed to.

    started: when publishing started, on the monotonic clock in seconds.
    describes: False if the text of the pull request is not to be updated.
    """
    publication = pushed.publication
    yield publication
    if publication.how == "unchanged":
        return
    if pushed.propose_onto:
        publication = _opened(making, pushed)
        yield publication
    elif describes and publication.how in {"pushed", "updated"}:
        publication = _described(making, publication)
        yield publication
    if making.request.log:
        pull = publication.pull_request
        where = (pull.url if pull else "") or publication.branch or ""
        making.request.log.stage("published", where, time.monotonic() - started)


def _opened(making: CommitBuilder, pushed: PushedChange) -> Publication:
    """Open the pull request and return the publication with it."""
    request, publication = making.request, pushed.publication
    report = request.report_with(publication)
    task = request.task.model_copy(update={"base_branch": pushed.propose_onto})
    proposed = report.model_copy(update={"task": task})
    opened = making.forge.open_pull_request(proposed, publication.branch or "")
    return publication.model_copy(update={"pull_request": opened})


def _described(making: CommitBuilder, publication: Publication) -> Publication:
    """Update the text of the pull request that the change was pushed to, if Resolver has opened it.

    A failure only adds a notice; the change remains published.
    """
    try:
        pull = making.forge.update_existing_pull_request(making.request.report_with(publication))
    except ForgeError as error:
        making.request.notices.append(f"{error.what}; {error.next_step}")
        return publication
    return publication.model_copy(update={"pull_request": pull}) if pull else publication


def _new(making: CommitBuilder) -> PushedChange:
    """Publish the change on a new branch."""
    request, base = making.request, making.workspace.base
    made = making.commit(request.patch.tree, base)
    local = request.trigger.kind is TriggerKind.LOCAL
    if request.settings.base_moved != "leave" and not local and request.task.follows is None:
        made = _on_newest(making, base) or made
    branch, placed = create_branch(making, made)
    return _proposed(making, Publication(branch=branch, commit=placed))


def _proposed(making: CommitBuilder, publication: Publication) -> PushedChange:
    return PushedChange(publication, propose_onto=making.request.task.base_branch)


def _on_newest(making: CommitBuilder, base: str) -> str | None:
    """Return a commit of the change on top of the newest commit of the base branch.

    Returns None if the base branch has not moved, or the change can't be applied to it or is
    already there. In the latter two cases, a notice says so.
    """
    request = making.request
    task, patch, credential = request.task, request.patch, request.credential()
    tip = fetch_tip(making.workspace.git, task.source, task.base_branch, credential)
    if tip is None or tip == base:
        return None
    made = making.onto(PlannedChange(base, patch.tree), tip)
    if made is None or made == tip:
        told = render("run/base_moved.md.j2", branch=task.base_branch, base=base)
        request.notices.append(told.strip())
        return None
    return made


def _add(making: CommitBuilder) -> PushedChange | None:
    """Add a commit to the branch that this run continues, or to the branch that it follows up.

    Returns None if there is no such branch, or it can't be used. In the second case a notice says
    why: the pull request is merged or closed, the branch is protected, or others have pushed
    commits to it that conflict with the change. Their commits are left alone.
    """
    request, earlier = making.request, _earlier(making)
    if not earlier.branch or not earlier.commit or not earlier.pull_request:
        return None
    if not earlier.branch.startswith(PREFIX):
        return None  # Resolver writes only branches with the prefix, so the record is not its own
    if making.forge.open_head(earlier.branch) is None:
        return _instead(making, earlier)
    try:
        return _proposed(making, _landed(making, earlier, earlier.branch, earlier.commit))
    except BranchUnavailable as missed:
        _not_added(request, earlier, missed.why)
        return None
    except PushRefused as refused:
        if not refused.of_branch:
            raise
        _not_added(request, earlier, "protected")
        return None


def _landed(making: CommitBuilder, earlier: Publication, branch: str, known: str) -> Publication:
    """Apply the change to the branch of the earlier run.

    Raises BranchUnavailable with a reason that the template `run/not_added.md.j2` knows.
    """
    git, source = making.workspace.git, making.request.task.source

    def tip_of() -> str:
        tip = fetch_tip(git, source, branch, making.request.credential())
        if tip is None or not is_ancestor(git, known, tip):
            raise BranchUnavailable("rewritten")
        return tip

    def push(commit: str, tip: str) -> str:
        return advance_branch(making, commit, branch, source, tip)

    tip_of()  # fetches the published commits into the clone, which `change_since` needs
    change = change_since(making, earlier)
    landed = apply_to_branch(making, change, branch, tip_of, push) if change else None
    if landed is None:
        raise BranchUnavailable("moved")
    if landed.how == "unchanged":
        there = {"how": "unchanged", "commit": landed.commit, "comment_url": None}
        return earlier.model_copy(update=there)
    return Publication(branch=branch, commit=landed.commit, how="added")


def _instead(making: CommitBuilder, earlier: Publication) -> PushedChange | None:
    """Publish a follow-up whose pull request is merged or closed, on top of the base branch.

    It contains only what the follow-up has changed. Returns None if all of the work is to be
    published.
    """
    request, task = making.request, making.request.task
    if task.follows is None or earlier.commit != task.follows.head:
        _not_added(request, earlier, "closed")
        return None
    credential = request.credential()
    tip = fetch_tip(making.workspace.git, task.source, task.base_branch, credential)
    made = making.replayed(task.follows.head, tip) if tip else None
    if made is None:
        _not_added(request, earlier, "closed")
        return None
    if made == tip:
        return PushedChange(earlier.model_copy(update={"how": "unchanged"}))
    _not_added(request, earlier, "left")
    branch, placed = create_branch(making, made)
    return _proposed(making, Publication(branch=branch, commit=placed))


def _earlier(making: CommitBuilder) -> Publication:
    """Return the publication that the change is added to; an empty one if there is none."""
    continuation, follows = making.request.continuation, making.request.task.follows
    if continuation and continuation.publication.pull_request:
        return continuation.publication
    if follows is None:
        return Publication()
    pull = PullRequest(title=follows.title, body="", number=follows.number, url=follows.url)
    tree = making.workspace.tree(follows.head)
    return Publication(branch=follows.branch, commit=follows.head, tree=tree, pull_request=pull)


def _not_added(request: PublishRequest, earlier: Publication, why: str) -> None:
    """Add a notice that says why the change was not added to the earlier branch."""
    pull = earlier.pull_request
    told = render(
        "run/not_added.md.j2", why=why, number=pull.number if pull else None, branch=earlier.branch
    )
    request.notices.append(told.strip())
