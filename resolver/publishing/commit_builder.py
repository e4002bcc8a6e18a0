"""The input of publishing, and the commits that are made from it in the host's clone.

The input contains the change, its task, and the report for people. A commit has an author,
co-authors, a message and the id of the run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from urllib.parse import urlsplit

from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.errors import PolicyViolation
from resolver.events.run_log import RunLog
from resolver.git.clone import check_commit
from resolver.git.git import Credential
from resolver.git.merge import is_ancestor, replay_commits
from resolver.git.policy import MAX_PATCH_BYTES, enforce_policy
from resolver.git.push import Identity, write_commit
from resolver.git.tree import read_patch
from resolver.git.workspace import Workspace
from resolver.github.client.accounts import ACTIONS_LOGIN
from resolver.github.comments.pull_request_text import commit_message
from resolver.github.comments.report import Report
from resolver.github.github_forge import GitHubForge
from resolver.github.text.markdown import format_title
from resolver.models.run import (
    Actor,
    Continuation,
    Patch,
    Publication,
    Task,
    Trigger,
    TriggerKind,
    UnverifiedReason,
)


def is_draft(setting: str, unverified: UnverifiedReason | None) -> bool:
    """Return True if the pull request is to be a draft.

    With the setting "auto", it is one if the change is not verified; `unverified` says why.
    """
    return setting == "always" if setting != "auto" else unverified is not None


@dataclass(frozen=True)
class PublishRequest:
    """A change to publish.

    run: id of the run.
    committed_at: date of the commits. It is the same in each attempt of a run, so that each attempt
        makes the same commits.
    credential: called for each use, because a token may expire.
    before_push: called immediately before a branch is written. What it raises keeps it as it is.
    report: the report as it is before anything is published, without notices about publishing.
    continuation: the earlier run that this one continues, None if there is none.
    log: records the branch name before the push; None if no agent has worked.
    """

    run: str
    trigger: Trigger
    task: Task
    patch: Patch
    settings: Settings
    committed_at: datetime
    credential: Callable[[], Credential | None]
    report: Report
    continuation: Continuation | None = None
    log: RunLog | None = None
    before_push: Callable[[], None] = lambda: None

    def report_with(self, change: "PushedChange") -> Report:
        """Return the report of the run with what has been published so far."""
        report, publication = self.report, change.publication
        has_unedited_conflicts = any(conflict.untouched for conflict in publication.conflicts)
        unverified: UnverifiedReason | None = (
            "unedited_conflict" if has_unedited_conflicts else report.unverified
        )
        commit = publication.commit or self.patch.commit
        return report.model_copy(
            update={
                "patch": self.patch.model_copy(update={"commit": commit}),
                "branch": publication.branch,
                "pull_request": publication.pull_request,
                "review": publication.review,
                "publication": publication,
                "unverified": unverified,
                "draft": is_draft(self.settings.draft, unverified),
                "warnings": (*report.warnings, *change.notices),
            }
        )


@dataclass(frozen=True)
class PushedChange:
    """A change that was pushed, or kept as a patch.

    proposed_base: the branch to open a pull request against, None for none.
    notices: what the reader of the pull request should know about how the change was published.
    is_new_branch: True if the branch was created just now, so that it has no pull request.
    """

    publication: Publication
    proposed_base: str | None = None
    notices: tuple[str, ...] = ()
    is_new_branch: bool = False


@dataclass(frozen=True)
class PushedCommit:
    """A commit that a branch holds after a push.

    notices: what the reader of the pull request should know about the push.
    is_new_branch: True if the push created the branch, and no earlier attempt of the run.
    is_unchanged: True if nothing was pushed. Then it is not a commit of this run.
    """

    id: str
    notices: tuple[str, ...] = ()
    is_new_branch: bool = False
    is_unchanged: bool = False


PUBLIC_HOST = "github.com"
"""Host of the public GitHub."""

KNOWN_IDS = {ACTIONS_LOGIN: 41898282}
"""Account ids on github.com by login. The token of a job may not look up its own account's id."""


@dataclass(frozen=True)
class CommitBuilder:
    """Makes the commits of one run, for the clone and the forge that it publishes with.

    optional_forge: None if the branch is written to a checkout on this machine.
    """

    request: PublishRequest
    optional_forge: GitHubForge | None
    workspace: Workspace

    @property
    def forge(self) -> GitHubForge:
        """The forge, on which the pull request is."""
        assert self.optional_forge is not None
        return self.optional_forge

    def commit(self, tree: str, parent: str, second_parent: str | None = None) -> str:
        """Commit `tree` on top of `parent` and return the id. The same run gives the same id.

        second_parent: makes the commit a merge, with the message of a merge.
        """
        request = self.request
        return write_commit(
            self.workspace.git,
            parent,
            tree,
            self._merge_message() if second_parent else commit_message(request.report),
            self._author,
            request.committed_at,
            co_authors(request.trigger, self._server),
            second_parent,
        )

    @cached_property
    def _author(self) -> Identity:
        forge = self.optional_forge
        account = forge.account() if forge else Actor(login="")
        return commit_identity(account.login, account.id, self._server)

    @property
    def _server(self) -> str:
        return self.request.settings.github_server_url

    def _merge_message(self) -> str:
        # Branch names are chosen by people, and commit messages notify and link like comments do.
        pull = self.workspace.pull
        base, head = (
            (format_title(n) for n in (pull.base_branch, pull.head_branch)) if pull else ("", "")
        )
        return render("run/merge.j2", base=base, head=head, run=self.request.run)

    def find_own_commit(self, base: str, tip: str) -> str | None:
        """Return the commit that an interrupted attempt of this run put on top of `base`.

        Returns None if `tip` has no such commit.
        """
        git, run = self.workspace.git, self.request.run
        commit_range = f"{check_commit(base)}..{check_commit(tip)}"
        trailer = f"--grep=Resolver-Run: {run}"
        log_output = git.text("log", "--fixed-strings", trailer, "--format=%H %T %P", commit_range)
        commits = (line.split() for line in log_output.splitlines())
        return next(
            (id for id, tree, *parents in commits if self._is_own_commit(id, tree, parents)), None
        )

    def _is_own_commit(self, id: str, tree: str, parents: list[str]) -> bool:
        """Return True if the commit was made by this run.

        The `Resolver-Run` trailer alone is no proof, because anybody can write it. So the commit is
        made again, which gives the same id. For a signed commit, which GitHub made, only the
        messages are compared.
        """
        if not 1 <= len(parents) <= 2:
            return False
        rebuilt = self.commit(tree, parents[0], *parents[1:])
        if not self.request.settings.signed_commits:
            return rebuilt == id
        show_message = ("log", "-1", "--format=%B")
        git = self.workspace.git
        return git.text(*show_message, id).strip() == git.text(*show_message, rebuilt).strip()

    def apply(self, parent: str, tip: str) -> str | None:
        """Return a commit that has the change on top of `tip`, the current commit of the branch.

        parent: the commit since which the run's tree is the change.

        Returns `tip` if it contains the change already or nothing has changed, and None if git
        can't apply it without a conflict, or the branch was rewritten. Raises PolicyViolation if
        the policy rejects the result.
        """
        git, patch = self.workspace.git, self.request.patch
        if patch.tree == self.workspace.tree(parent):
            return tip
        if tip == parent:
            if tip != patch.base:
                self._check(tip, patch.tree)  # it was judged relative to its base
            return self.commit(patch.tree, tip)
        if not is_ancestor(git, parent, tip):
            return None
        merged = replay_commits(git, parent, patch.tree, tip)
        if merged.conflicts:
            return None
        if merged.tree == self.workspace.tree(tip):
            return tip
        self._check(tip, merged.tree)
        return self.commit(merged.tree, tip)

    def _check(self, base: str, tree: str) -> None:
        """Judge the change once more, relative to the tip that it was applied to.

        Applied to another base, a change may become a different one: it may then touch a protected
        file, or exceed a limit.
        """
        settings = self.request.settings
        patch = read_patch(self.workspace.git, base, tree, MAX_PATCH_BYTES)
        try:
            enforce_policy(self.workspace, patch, settings.protected_paths)
        except PolicyViolation as violation:
            raise PolicyViolation(
                f"on top of the commits pushed during the run, {violation.what}",
                violation.next_step,
                settings_decide=violation.settings_decide,
            ) from violation


def commit_identity(login: str, id: int | None, server: str) -> Identity:
    """Return the name and address for an account in a commit; the server links it by the address.

    Addresses are `<id>+<login>@users.noreply.<host>`:
    https://docs.github.com/en/account-and-profile/reference/email-addresses-reference
    """
    host = urlsplit(server).hostname or PUBLIC_HOST
    login = login or "resolver"
    id = id or (KNOWN_IDS.get(login) if host == PUBLIC_HOST else None)
    user = f"{id}+{login}" if id is not None else login
    return Identity(login, f"{user}@users.noreply.{host}")


def co_authors(trigger: Trigger, server: str) -> tuple[Identity, ...]:
    """Return the person who made the request, if GitHub knows them.

    Nobody is named for a failing check, because nobody has made a request.
    """
    without_requester = {TriggerKind.LOCAL, TriggerKind.COMMAND_LINE, TriggerKind.CHECK_FAILED}
    if trigger.kind in without_requester:
        return ()
    return (commit_identity(trigger.actor.login, trigger.actor.id, server),)
