"""The change made public: commit, branch, pull request."""

import time
from pathlib import Path

from resolver.errors import BranchTaken, ForgeError
from resolver.forge.base import Forge
from resolver.forge.wording import pull_request_body, pull_request_title
from resolver.model import Publication, PullRequest, Task, Trigger, TriggerKind
from resolver.record import Record
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
    patch = workspace.commit(
        record.patch,
        message=render("run/commit.j2", title=title, task=task, run=job.run),
        author=_identity(forge.whoami(), None),
        at=job.now(),
        co_authors=_co_authors(job.trigger),
    )
    assert patch.commit is not None
    branch = _push(record, forge, task, workspace, patch.commit)
    record.patch = patch
    record.publication = Publication(branch=branch, commit=patch.commit)
    pull_request = forge.open_pull_request(record.report(), branch)
    record.publication = record.publication.model_copy(update={"pull_request": pull_request})
    if record.log:
        record.log.stage("published", pull_request.url or branch, time.monotonic() - started)


def _push(record: Record, forge: Forge, task: Task, workspace: Workspace, commit: str) -> str:
    """Publish the commit under a free branch name; the name."""
    trigger = record.job.trigger
    wanted = branch_name(task.title)
    forge.discard_abandoned(wanted, record.job.run)
    taken = forge.branches(wanted)
    for _ in range(BRANCH_ATTEMPTS):
        branch = free_branch(taken, wanted)
        try:
            if trigger.kind is TriggerKind.LOCAL:
                workspace.write_branch(Path(task.source), branch, commit)
            else:
                workspace.push(commit, branch, task.source, record.credential())
        except BranchTaken:
            taken = {*taken, branch}
        else:
            return branch
    raise ForgeError(f"no free branch name like {wanted} was found", "delete old agent/ branches")


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
