"""The run's commits, made in the host's clone: the change, and merges, with who made them, who
asked for them and which run it was.
"""

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.errors import PolicyViolation
from resolver.git.clone import check_commit
from resolver.git.merge import MergeResult, is_ancestor, merge, replay_commits
from resolver.git.policy import PatchPolicy, check
from resolver.git.publish import Identity
from resolver.git.tree import read_patch
from resolver.git.workspace import Workspace
from resolver.github.comments.pull_request_text import commit_message
from resolver.github.forge import Forge
from resolver.github.text.escape import title
from resolver.models.run import Patch, Trigger, TriggerKind
from resolver.publishing.request import PublishRequest

PUBLIC = "github.com"

KNOWN_IDS = {"github-actions[bot]": 41898282}
"""The account that an Action's own token writes as there; it may not ask for its number."""


@dataclass(frozen=True)
class PlannedChange:
    """What the work has changed, as it is on top of one commit. parent: that commit. tree: what
    that is with the change."""

    parent: str
    tree: str


@dataclass(frozen=True)
class CommitBuilder:
    """What a run's commits are made of, and where they are made public."""

    request: PublishRequest
    forge: Forge
    workspace: Workspace

    def commit(self, tree: str, parent: str, merged: str = "") -> str:
        """Id of a commit of ours. The same run gives the same commit each time.

        merged: a second parent: then it is a merge, and named so.
        """
        request, patch = self.request, self.request.patch
        made = self.workspace.commit(
            patch.model_copy(update={"tree": tree}),
            message=self._merge_message(merged) if merged else self._message(),
            author=self._author,
            at=request.committed_at,
            co_authors=co_authors(request.trigger, self._server),
            parent=parent,
            merged=merged,
        ).commit
        assert made is not None
        return made

    @cached_property
    def _author(self) -> Identity:
        account = self.forge.account()
        return commit_identity(account.login, account.id, self._server)

    @property
    def _server(self) -> str:
        return self.request.settings.github_server_url

    def _message(self) -> str:
        return commit_message(self.request.report)

    def _merge_message(self, merged: str) -> str:
        pull = self.workspace.pull
        if pull is None or merged != pull.base:
            return render("run/merge.j2", base="", head="", run=self.request.run)
        # names that people gave: a commit's message notifies and links as a comment does
        base, head = title(pull.base_branch), title(pull.head_branch)
        return render("run/merge.j2", base=base, head=head, run=self.request.run)

    @property
    def _patch(self) -> Patch:
        return self.request.patch

    def own_since(self, known: str, tip: str) -> str | None:
        """The commit that this run itself has put on the branch after `known`, by an attempt that
        was cut off; None where `tip` holds none."""
        git, run = self.workspace.git, self.request.run
        given = f"{check_commit(known)}..{check_commit(tip)}"
        mark = f"--grep=Resolver-Run: {run}"
        listed = git.text("log", "--fixed-strings", mark, "--format=%H %T %P", given)
        found = (line.split() for line in listed.splitlines())
        return next((id for id, tree, *parents in found if self._is_own(id, tree, parents)), None)

    def _is_own(self, id: str, tree: str, parents: list[str]) -> bool:
        """Anybody can write our mark. Where the forge makes the commit, its words must be the
        same; else all of it."""
        if not 1 <= len(parents) <= 2:
            return False
        made = self.commit(tree, parents[0], *parents[1:])
        if not self.request.settings.signed_commits:
            return made == id
        words = ("show", "--no-patch", "--format=%B")
        git = self.workspace.git
        return git.text(*words, id).strip() == git.text(*words, made).strip()

    def onto(self, change: PlannedChange, tip: str) -> str | None:
        """Id of a commit that brings the change on top of what its branch holds by now; None where
        git alone can't. `tip` itself where all of it is there.

        What comes of the two together is held against the policy. Raises PolicyViolation.
        """
        git, known = self.workspace.git, change.parent
        if tip == known:
            if (tip, change.tree) != (self._patch.base, self._patch.tree):
                self._check(tip, change.tree)  # else it is the very change that was judged
            return self.commit(change.tree, tip)
        if not is_ancestor(git, known, tip):
            return None
        merges = self.request.settings.base_moved == "merge"
        made = self.commit(change.tree, known) if merges else ""
        found = merge(git, tip, made) if merges else replay_commits(git, known, change.tree, tip)
        return self._put(found, tip, made)

    def replayed(self, known: str, tip: str) -> str | None:
        """As `onto`, of what has changed since `known`, where the two may have no history in
        common, as after a squash."""
        return self._put(replay_commits(self.workspace.git, known, self._patch.tree, tip), tip)

    def _put(self, found: MergeResult, tip: str, merged: str = "") -> str | None:
        if found.conflicts:
            return None
        if found.tree == self.workspace.tree(tip):
            return tip
        self._check(tip, found.tree)
        return self.commit(found.tree, tip, merged)

    def _check(self, base: str, tree: str) -> None:
        """As the change was judged by itself: what it comes to elsewhere may be something else."""
        settings = self.request.settings
        patch = read_patch(self.workspace.git, base, tree, settings.max_patch_bytes)
        try:
            check(self.workspace, patch, patch_policy_of(settings))
        except PolicyViolation as violation:
            raise PolicyViolation(
                f"on top of what was pushed meanwhile, {violation.what}",
                violation.next_step,
                settings_decide=violation.settings_decide,
            ) from violation


def patch_policy_of(settings: Settings) -> PatchPolicy:
    """Return what a change of a run with these settings may be."""
    return PatchPolicy(
        protected_paths=settings.protected_paths,
        max_bytes=settings.max_patch_bytes,
        max_files=settings.max_patch_files,
    )


def commit_identity(login: str, id: int | None, server: str) -> Identity:
    """How a commit names an account, so that the server at this address links it: its users'
    addresses without mail are below its own name.
    """
    host = urlsplit(server).hostname or PUBLIC
    login = login or "resolver"
    id = id or (KNOWN_IDS.get(login) if host == PUBLIC else None)
    user = f"{id}+{login}" if id is not None else login
    return Identity(login, f"{user}@users.noreply.{host}")


def co_authors(trigger: Trigger, server: str) -> tuple[Identity, ...]:
    """The person who asked, where the forge knows them; nobody has asked for a failing check."""
    nobody = {TriggerKind.LOCAL, TriggerKind.COMMAND_LINE, TriggerKind.CHECK_FAILED}
    if trigger.kind in nobody:
        return ()
    return (commit_identity(trigger.actor.login, trigger.actor.id, server),)
