"""The change made public: commit, branch, pull request."""

import time
from collections.abc import Callable
from pathlib import Path

from resolver.errors import BranchTaken, ForgeError
from resolver.forge.base import Forge
from resolver.forge.wording import pull_request_body, pull_request_title
from resolver.model import Publication, PullRequest, Task, Trigger, TriggerKind
from resolver.record import Record
from resolver.runlog import BRANCH_STAGE
from resolver.templates import render
from resolver.workspace.naming import branch_name, free_branch
from resolver.workspace.publish import Identity
from resolver.workspace.workspace import Workspace

KNOWN_IDS = {"github-actions[bot]": 41898282}
"""The account that an Action's own token writes as; it may not ask for its number."""

BRANCH_ATTEMPTS = 5
"""How often another name is tried when somebody takes the branch at the same moment."""


def publish(record: Record, forge: Forge, task: Task, workspace: Workspace) -> None:
    """Commit, push, open. Each part finds what an earlier attempt has already done."""
    job = record.job
    assert record.patch is not None
    report = record.report()
    title = pull_request_title(report)
    if not job.publish:
        body = pull_request_body(report)
        record.publication = Publication(pull_request=PullRequest(title=title, body=body))
        return
    started = time.monotonic()

    def commit(parent: str | None) -> str:
        assert record.patch is not None
        record.patch = workspace.commit(
            record.patch,
            message=render("run/commit.j2", title=title, task=task, run=job.run),
            author=_identity(forge.whoami(), None),
            at=record.log.ended_at if record.log else job.now(),
            co_authors=_co_authors(job.trigger),
            parent=parent,
        )
        assert record.patch.commit is not None
        return record.patch.commit

    added = _add(record, forge, task, workspace, commit)
    if added is None:
        made = commit(None)
        branch = _push(record, forge, task, workspace, made)
        added = Publication(branch=branch, commit=made)
    record.publication = added
    if added.how == "unchanged":
        record.exit_code = 3
        return
    branch = added.branch or ""
    pull_request = forge.open_pull_request(record.report(), branch)
    record.publication = added.model_copy(update={"pull_request": pull_request})
    if record.log:
        record.log.stage("published", pull_request.url or branch, time.monotonic() - started)


def _add(
    record: Record,
    forge: Forge,
    task: Task,
    workspace: Workspace,
    commit: Callable[[str | None], str],
) -> Publication | None:
    """One more commit on the branch of the run that this one goes on from.

    None when there is no such branch to add to. Where there was one, a warning says why: its pull
    request is merged or closed, or somebody else has pushed to it, whose work is left alone.
    """
    continuation = record.job.continuation
    earlier = continuation.publication if continuation else Publication()
    if not earlier.branch or not earlier.commit or not earlier.pull_request:
        return None
    credential = record.credential()
    if forge.open_head(earlier.branch) is None:
        return _not_added(record, earlier, "closed")
    head = workspace.fetch_branch(earlier.branch, earlier.commit, task.source, credential)
    if head is None:
        return _not_added(record, earlier, "rewritten")
    assert record.patch is not None
    if workspace.tree(earlier.commit) == record.patch.tree:
        return earlier.model_copy(update={"how": "unchanged", "comment_url": None})
    made = commit(earlier.commit)
    if head not in {earlier.commit, made}:
        return _not_added(record, earlier, "moved")
    try:
        workspace.push(made, earlier.branch, task.source, credential, earlier.commit)
    except BranchTaken:
        return _not_added(record, earlier, "moved")
    return Publication(branch=earlier.branch, commit=made, how="added")


def _not_added(record: Record, earlier: Publication, why: str) -> Publication | None:
    pull = earlier.pull_request
    told = render(
        "run/not_added.md.j2", why=why, number=pull.number if pull else None, branch=earlier.branch
    )
    record.warnings.append(told.strip())
    return None


def _push(record: Record, forge: Forge, task: Task, workspace: Workspace, commit: str) -> str:
    """Publish the commit under a free branch name; the name.

    The name is in the log before anything is pushed: a killed attempt's branch is found again.
    """
    wanted = branch_name(task.title)
    intended = record.log.intended_branch(record.job.run) if record.log else None
    if intended and _create(record, task, workspace, commit, intended):
        return intended
    forge.discard_abandoned(wanted, record.job.run)
    taken = forge.branches(wanted)
    for _ in range(BRANCH_ATTEMPTS):
        branch = free_branch(taken, wanted)
        if record.log:
            record.log.stage(BRANCH_STAGE, branch, 0.0)
        if _create(record, task, workspace, commit, branch):
            return branch
        taken = {*taken, branch}
    raise ForgeError(f"no free branch name like {wanted} was found", "delete old agent/ branches")


def _create(record: Record, task: Task, workspace: Workspace, commit: str, branch: str) -> bool:
    """Make `branch` hold the commit; False when it holds something else."""
    try:
        if record.job.trigger.kind is TriggerKind.LOCAL:
            workspace.write_branch(Path(task.source), branch, commit)
        else:
            workspace.push(commit, branch, task.source, record.credential())
    except BranchTaken:
        return False
    return True


def _identity(login: str, id: int | None) -> Identity:
    """How a commit names an account, so that GitHub links it."""
    login = login or "resolver"
    id = id or KNOWN_IDS.get(login)
    user = f"{id}+{login}" if id is not None else login
    return Identity(login, f"{user}@users.noreply.github.com")


def _co_authors(trigger: Trigger) -> tuple[Identity, ...]:
    """The person who asked, where the forge knows them."""
    if trigger.kind in {TriggerKind.LOCAL, TriggerKind.COMMAND_LINE}:
        return ()
    return (_identity(trigger.actor.login, trigger.actor.id),)
