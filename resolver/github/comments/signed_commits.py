"""Creates commits through GitHub's Git Data API, so that GitHub signs them.

GitHub signs commits that are created with the installation token of an App or an Action and that
name no author; the author is then that account. A commit from the host is created again from the
same contents, and its tree must get the same id, else nothing is published. Branches are only ever
fast-forwarded.

Source:
https://docs.github.com/authentication/managing-commit-signature-verification/about-commit-signature-verification#signature-verification-for-bots
"""

import base64
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import quote

import github
from github.Repository import Repository

from resolver.errors import BranchTaken, ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.comments.find_or_create import branch_tips
from resolver.models.repository import LocalCommit, NewEntry, PublishedCommit

MOST_BLOBS = 500
"""Maximum number of new blobs in one publication.

GitHub allows about 80 writes per minute and 500 per hour.
"""

_NEEDS = "contents: write"
_PLAIN = "set signed_commits to false, so that it is pushed with git"

Contents = Callable[[LocalCommit], Iterable[tuple[str, bytes]]]
"""Returns the new blobs of a commit as pairs of id and content."""


class SignedCommits:
    """Puts signed commits on branches of one repository. All methods raise ForgeError."""

    def __init__(self, access: GitHubAccess, repository: Repository) -> None:
        self._access = access
        self._repository = repository

    def put(
        self, commits: Sequence[LocalCommit], contents: Contents, branch: str, previous: str
    ) -> PublishedCommit:
        """Move `branch` to the last of the commits and return the commit that it then points to.

        `commits` are ordered oldest first; each parent is one of them or already on GitHub.
        `previous` is the current tip of the branch, "" for a new branch. Calling this again finds
        the existing result. Raises BranchTaken if the branch points to anything else.
        """
        there = self._tip(branch)
        # An earlier attempt may have moved the branch and then failed: if the tip is what these
        # commits would become, it is the result. Ids cannot be compared, since GitHub sets another
        # author and date.
        if there and there != previous:
            return self._found(there, commits, branch)
        if sum(len(commit.blobs) for commit in commits) > MOST_BLOBS:
            raise ForgeError(
                f"the change has more than {MOST_BLOBS} new files, too many to sign", _PLAIN
            )
        # Nothing is visible to anybody until `_move`: unreferenced objects are harmless if this
        # fails.
        made: dict[str, str] = {}
        signed = False
        for commit in commits:
            for blob, content in contents(commit):
                self._blob(blob, content)
            self._tree(commit)
            made[commit.id], signed = self._commit(commit, made)
        newest = made[commits[-1].id]
        try:
            self._move(branch, newest, previous)
        except _Refused:
            return self._found(self._tip(branch), commits, branch)
        return PublishedCommit(id=newest, signed=signed)

    def _tip(self, branch: str) -> str:
        """Return the commit that the branch points to, "" if it does not exist."""
        with self._access.asking(f"look at {branch}", "contents: read"):
            return branch_tips(self._repository, branch).get(branch, "")

    def _found(self, tip: str, commits: Sequence[LocalCommit], branch: str) -> PublishedCommit:
        """Return the branch's tip if an earlier attempt created it from the same commits.

        Raises BranchTaken if it is anything else.
        """
        known = {commit.id: commit for commit in commits}
        if tip:
            newest = self._read(tip)
            if self._is_same(newest, commits[-1], known):
                return PublishedCommit(id=tip, signed=_is_signed(newest))
        raise BranchTaken(
            f"the branch {branch} holds something else",
            "delete it there, or choose another name",
        )

    def _is_same(self, there: Any, commit: LocalCommit, known: dict[str, LocalCommit]) -> bool:
        same_tree = there["tree"]["sha"] == commit.tree
        same_words = str(there["message"]).strip() == commit.message.strip()
        parents = [str(parent["sha"]) for parent in there["parents"]]
        if not (same_tree and same_words and len(parents) == len(commit.parents)):
            return False
        pairs = zip(parents, commit.parents, strict=True)
        return all(
            self._is_same(self._read(theirs), known[ours], known)
            if ours in known
            else theirs == ours
            for theirs, ours in pairs
        )

    def _read(self, commit: str) -> Any:
        with self._access.asking(f"read the commit {commit[:12]}", "contents: read"):
            return self._ask("GET", f"/git/commits/{commit}")

    def _blob(self, id: str, content: bytes) -> None:
        sent = {"content": base64.b64encode(content).decode("ascii"), "encoding": "base64"}
        made = self._made("upload a file", "/git/blobs", sent)
        _require_same("a file", id, made["sha"])

    def _tree(self, commit: LocalCommit) -> None:
        entries = [_entry(entry) for entry in commit.entries]
        sent = {"base_tree": commit.base_tree, "tree": entries}
        if not entries:
            return  # an empty commit, or a merge that takes one side as it is
        made = self._made("make a tree", "/git/trees", sent)
        _require_same("the change", commit.tree, made["sha"])

    def _commit(self, commit: LocalCommit, made: dict[str, str]) -> tuple[str, bool]:
        sent = {
            "message": commit.message,
            "tree": commit.tree,
            "parents": [made.get(parent, parent) for parent in commit.parents],
        }
        answer = self._made("make a commit", "/git/commits", sent)
        _require_same("the commit's tree", commit.tree, answer["tree"]["sha"])
        return str(answer["sha"]), _is_signed(answer)

    def _move(self, branch: str, commit: str, previous: str) -> None:
        """Create the branch, or fast-forward it. Raises _Refused if it points to anything else."""

        def write() -> None:
            try:
                if previous:
                    sent = {"sha": commit, "force": False}
                    self._ask("PATCH", f"/git/refs/heads/{quote(branch)}", sent)
                else:
                    ref = {"ref": f"refs/heads/{branch}", "sha": commit}
                    self._ask("POST", "/git/refs", ref)
            except github.GithubException as error:
                said = str(error.data).lower()
                if error.status == 422 and ("already exists" in said or "fast forward" in said):
                    raise _Refused from None
                raise

        tried: list[str] = []

        def attempt() -> None:
            # The response of an earlier attempt may have been lost: look before writing again.
            if not tried or self._tip(branch) != commit:
                tried.append(commit)
                write()

        self._access.persistently(f"write {branch}", _NEEDS, attempt)

    def _made(self, what: str, path: str, sent: dict[str, Any]) -> Any:
        """Create a git object.

        This is safe to repeat after a failure that may hide a success: an unused object has no
        effect.
        """
        return self._access.persistently(what, _NEEDS, lambda: self._ask("POST", path, sent))

    def _ask(self, method: str, path: str, sent: dict[str, Any] | None = None) -> Any:
        url = f"{self._repository.url}{path}"
        _, answer = self._repository.requester.requestJsonAndCheck(method, url, input=sent)
        return answer


class _Refused(Exception):
    """The branch exists already, or its tip is not an ancestor of the commit."""


def _entry(entry: NewEntry) -> dict[str, Any]:
    kind = "commit" if entry.mode == "160000" else "blob"
    return {"path": entry.path, "mode": entry.mode, "type": kind, "sha": entry.id}


def _require_same(what: str, ours: str, theirs: object) -> None:
    if theirs != ours:
        raise ForgeError(
            f"GitHub made {what} as {str(theirs)[:12]} and not as {ours[:12]}, so nothing was "
            "published",
            _PLAIN,
        )


def _is_signed(commit: Any) -> bool:
    return bool((commit.get("verification") or {}).get("verified"))
