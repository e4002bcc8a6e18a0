"""The change made public: commit, branch, pull request."""

import time

from resolver.errors import ForgeError, PushRefused
from resolver.forge.base import Forge
from resolver.forge.pull_words import pull_request_body, pull_request_title
from resolver.model import Publication, PullRequest, Task, TriggerKind
from resolver.publishing.landing import change_since, land
from resolver.publishing.making import Change, Making
from resolver.publishing.onto import Missed, publish_on_pull
from resolver.publishing.placing import move_on, new_branch
from resolver.publishing.updating import publish_merge
from resolver.record import Record
from resolver.templates import render
from resolver.workspace.merging import is_ancestor
from resolver.workspace.naming import PREFIX
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
        if record.publication.how in {"pushed", "updated"}:
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
    task, patch = making.task, making.record.patch
    assert patch is not None
    credential = making.record.credential()
    tip = fetch_tip(making.workspace.git, task.source, task.base_branch, credential)
    if tip is None or tip == base:
        return None
    made = making.onto(Change(base, patch.tree), tip)
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
    record, earlier = making.record, _earlier(making)
    if not earlier.branch or not earlier.commit or not earlier.pull_request:
        return None
    if not earlier.branch.startswith(PREFIX):
        return None  # a record that says so is none of ours
    if making.forge.open_head(earlier.branch) is None:
        return _instead(making, earlier)
    try:
        return _landed(making, earlier, earlier.branch, earlier.commit)
    except Missed as missed:
        return _not_added(record, earlier, missed.why)
    except PushRefused as refused:
        if not refused.of_branch:
            raise
        return _not_added(record, earlier, "protected")


def _landed(making: Making, earlier: Publication, branch: str, known: str) -> Publication:
    """Raises Missed with the word that the template knows."""
    git, source = making.workspace.git, making.task.source

    def tip_of() -> str:
        tip = fetch_tip(git, source, branch, making.record.credential())
        if tip is None or not is_ancestor(git, known, tip):
            raise Missed("rewritten")
        return tip

    def push(commit: str, tip: str) -> str:
        return move_on(making, commit, branch, source, tip)

    tip_of()  # brings what is public into the clone
    change = change_since(making, earlier)
    landed = land(making, change, branch, tip_of, push) if change else None
    if landed is None:
        raise Missed("moved")
    if landed.how == "unchanged":
        there = {"how": "unchanged", "commit": landed.commit, "comment_url": None}
        return earlier.model_copy(update=there)
    return Publication(branch=branch, commit=landed.commit, how="added")


def _instead(making: Making, earlier: Publication) -> Publication | None:
    """What is left to be made public where the pull request is merged or closed by now: what was
    asked for by itself, on top of the base branch. None where that is to be all of the work."""
    record, task = making.record, making.task
    if task.follows is None or earlier.commit != task.follows.head:
        return _not_added(record, earlier, "closed")
    credential = record.credential()
    tip = fetch_tip(making.workspace.git, task.source, task.base_branch, credential)
    made = making.replayed(task.follows.head, tip) if tip else None
    if made is None:
        return _not_added(record, earlier, "closed")
    if made == tip:
        return earlier.model_copy(update={"how": "unchanged"})
    _not_added(record, earlier, "left")
    branch, placed = new_branch(making, made)
    return Publication(branch=branch, commit=placed)


def _earlier(making: Making) -> Publication:
    """What is added to; nothing of it is set where the work stands by itself."""
    continuation, follows = making.record.job.continuation, making.task.follows
    if continuation and continuation.publication.pull_request:
        return continuation.publication
    if follows is None:
        return Publication()
    pull = PullRequest(title=follows.title, body="", number=follows.number, url=follows.url)
    tree = making.workspace.tree(follows.head)
    return Publication(branch=follows.branch, commit=follows.head, tree=tree, pull_request=pull)


def _not_added(record: Record, earlier: Publication, why: str) -> Publication | None:
    pull = earlier.pull_request
    told = render(
        "run/not_added.md.j2", why=why, number=pull.number if pull else None, branch=earlier.branch
    )
    record.warnings.append(told.strip())
    return None
