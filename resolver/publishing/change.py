"""The change made public: commit, branch, pull request."""

import time

from resolver.errors import BranchTaken, ForgeError
from resolver.forge.base import Forge
from resolver.forge.pull_words import pull_request_body, pull_request_title
from resolver.model import Publication, PullRequest, Task, TriggerKind
from resolver.publishing.making import Making
from resolver.publishing.onto import publish_on_pull
from resolver.publishing.placing import ATTEMPTS, new_branch
from resolver.publishing.signing import put_signed
from resolver.publishing.updating import publish_merge
from resolver.record import Record
from resolver.templates import render
from resolver.workspace.merging import is_ancestor
from resolver.workspace.pushing import fetch_tip
from resolver.workspace.workspace import Workspace


def publish(record: Record, forge: Forge, task: Task, workspace: Workspace) -> None:
    """Commit, push, open. Each part finds what an earlier attempt has already done."""
    assert record.patch is not None
    if not record.job.publish:
        report = record.report()
        title, body = pull_request_title(report), pull_request_body(report)
        record.publication = Publication(pull_request=PullRequest(title=title, body=body))
        return
    started = time.monotonic()
    making = Making(record, forge, task, workspace)
    if workspace.pull is None:
        _propose(making)
    else:
        on_pull = publish_merge if workspace.pull.conflicts else publish_on_pull
        record.publication = on_pull(making)
        if record.publication.how == "pushed" or record.publication.conflicts:
            record.publication = _told_there(making, record.publication)
    added = record.publication
    if added.commit:
        record.patch = record.patch.model_copy(update={"commit": added.commit})
    if added.how == "unchanged":
        record.exit_code = 3
        return
    if record.log:
        where = added.pull_request.url if added.pull_request else ""
        record.log.stage("published", where or added.branch or "", time.monotonic() - started)


def _told_there(making: Making, added: Publication) -> Publication:
    """With the text of the pull request that the change was pushed to, where that is ours: it says
    what is new. That it can't be written is told, and undoes nothing."""
    making.record.publication = added
    try:
        pull = making.forge.bring_up(making.record.report())
    except ForgeError as error:
        making.record.warnings.append(f"{error.what}; {error.next_step}")
        return added
    return added.model_copy(update={"pull_request": pull}) if pull else added


def _propose(making: Making) -> None:
    """A branch and its pull request, or one more commit on those of an earlier run."""
    record = making.record
    added = _add(making) or _new(making)
    record.publication = added
    if record.patch:
        record.patch = record.patch.model_copy(update={"commit": added.commit})
    if added.how == "unchanged":
        return
    pull_request = making.forge.open_pull_request(record.report(), added.branch or "")
    record.publication = added.model_copy(update={"pull_request": pull_request})


def _new(making: Making) -> Publication:
    record, base = making.record, making.workspace.base
    assert record.patch is not None
    made = making.commit(record.patch.tree, base)
    local = record.job.trigger.kind is TriggerKind.LOCAL
    if record.settings.base_moved != "leave" and not local and making.task.follows is None:
        made = _on_newest(making, base) or made
    branch, placed = new_branch(making, made)
    return Publication(branch=branch, commit=placed)


def _on_newest(making: Making, base: str) -> str | None:
    """The commit together with what the base branch has got since; None where nothing is to be done
    about that, or nothing can be."""
    task = making.task
    credential = making.record.credential()
    tip = fetch_tip(making.workspace.git, task.source, task.base_branch, credential)
    if tip is None or tip == base:
        return None
    made = making.onto(base, tip)
    if made is None or made == tip:
        told = render("run/base_moved.md.j2", branch=task.base_branch, base=base)
        making.record.warnings.append(told.strip())
        return None
    return made


def _add(making: Making) -> Publication | None:
    """One more commit on the branch of the run that this one goes on from, or of the open pull
    request that the work adds to.

    None when there is no such branch to add to. Where there was one, a warning says why: its pull
    request is merged or closed, or somebody else has pushed to it what does not go together with
    the change by itself; their work is left alone.
    """
    record, task, workspace = making.record, making.task, making.workspace
    earlier = _earlier(making)
    if not earlier.branch or not earlier.commit or not earlier.pull_request:
        return None
    if making.forge.open_head(earlier.branch) is None:
        return _not_added(record, earlier, "closed")
    assert record.patch is not None
    for _ in range(ATTEMPTS):
        tip = fetch_tip(workspace.git, task.source, earlier.branch, record.credential())
        if tip is None or not is_ancestor(workspace.git, earlier.commit, tip):
            return _not_added(record, earlier, "rewritten")
        if workspace.tree(earlier.commit) == record.patch.tree:
            return earlier.model_copy(update={"how": "unchanged", "comment_url": None})
        made = making.onto(earlier.commit, tip)
        if made is None:
            break
        placed = tip if made == tip else _moved_on(making, made, earlier.branch, tip)
        if placed:
            return Publication(branch=earlier.branch, commit=placed, how="added")
    return _not_added(record, earlier, "moved")


def _earlier(making: Making) -> Publication:
    """What is added to; nothing of it is set where the work stands by itself."""
    continuation, follows = making.record.job.continuation, making.task.follows
    if continuation and continuation.publication.pull_request:
        return continuation.publication
    if follows is None:
        return Publication()
    pull = PullRequest(title=follows.title, body="", number=follows.number, url=follows.url)
    return Publication(branch=follows.branch, commit=follows.head, pull_request=pull)


def _moved_on(making: Making, commit: str, branch: str, tip: str) -> str:
    """As `move_on`, of a branch of ours alone: its name comes from an earlier run's record."""
    source, credential = making.task.source, making.record.credential()
    try:
        if signed := put_signed(making, commit, branch, tip):
            return signed
        making.workspace.push(commit, branch, source, credential, tip)
    except BranchTaken:
        return ""
    return commit


def _not_added(record: Record, earlier: Publication, why: str) -> Publication | None:
    pull = earlier.pull_request
    told = render(
        "run/not_added.md.j2", why=why, number=pull.number if pull else None, branch=earlier.branch
    )
    record.warnings.append(told.strip())
    return None
