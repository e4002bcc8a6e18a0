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

MAX_BLOBS = 500
"""Maximum number of new blobs in one publication.

GitHub allows about 80 writes per minute and 500 per hour.
"""

_PERMISSION = "contents: write"
_UNSIGNED_NEXT_STEP = "set signed_commits to false, so that it is pushed with git"

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
        tip = self._tip(branch)
        # An earlier attempt may have moved the branch and then failed: if the tip is what these
        # commits would become, it is the result. Ids cannot be compared, since GitHub sets another
        # author and date.
        if tip and tip != previous:
            return self._require_published(tip, commits, branch)
        if sum(len(commit.blobs) for commit in commits) > MAX_BLOBS:
            raise ForgeError(
                f"the change has more than {MAX_BLOBS} new files, too many to sign",
                _UNSIGNED_NEXT_STEP,
            )
        # Nothing is visible to anybody until `_move_branch`: unreferenced objects are harmless if
        # this fails.
        created_ids: dict[str, str] = {}
        signed = False
        for commit in commits:
            for blob, content in contents(commit):
                self._upload_blob(blob, content)
            self._create_tree(commit)
            created_ids[commit.id], signed = self._create_commit(commit, created_ids)
        newest = created_ids[commits[-1].id]
        try:
            self._move_branch(branch, newest, previous)
        except _Refused:
            return self._require_published(self._tip(branch), commits, branch)
        return PublishedCommit(id=newest, signed=signed)

    def _tip(self, branch: str) -> str:
        """Return the commit that the branch points to, "" if it does not exist."""
        with self._access.wrap_errors(f"look at {branch}", "contents: read"):
            return branch_tips(self._repository, branch).get(branch, "")

    def _require_published(
        self, tip: str, commits: Sequence[LocalCommit], branch: str
    ) -> PublishedCommit:
        """Return the branch's tip if an earlier attempt created it from the same commits.

        Raises BranchTaken if it is anything else.
        """
        commits_by_id = {commit.id: commit for commit in commits}
        if tip:
            tip_commit = self._read_commit(tip)
            if self._is_same(tip_commit, commits[-1], commits_by_id):
                return PublishedCommit(id=tip, signed=_is_signed(tip_commit))
        raise BranchTaken(
            f"the branch {branch} contains other commits",
            "delete it there, or choose another name",
        )

    def _is_same(
        self, published: Any, commit: LocalCommit, commits_by_id: dict[str, LocalCommit]
    ) -> bool:
        same_tree = published["tree"]["sha"] == commit.tree
        same_message = str(published["message"]).strip() == commit.message.strip()
        parents = [str(parent["sha"]) for parent in published["parents"]]
        if not (same_tree and same_message and len(parents) == len(commit.parents)):
            return False
        pairs = zip(parents, commit.parents, strict=True)
        return all(
            self._is_same(
                self._read_commit(published_parent), commits_by_id[local_parent], commits_by_id
            )
            if local_parent in commits_by_id
            else published_parent == local_parent
            for published_parent, local_parent in pairs
        )

    def _read_commit(self, commit: str) -> Any:
        with self._access.wrap_errors(f"read the commit {commit[:12]}", "contents: read"):
            return self._request("GET", f"/git/commits/{commit}")

    def _upload_blob(self, id: str, content: bytes) -> None:
        body = {"content": base64.b64encode(content).decode("ascii"), "encoding": "base64"}
        blob = self._create_object("upload a file", "/git/blobs", body)
        _require_same("a file", id, blob["sha"])

    def _create_tree(self, commit: LocalCommit) -> None:
        entries = [_entry(entry) for entry in commit.entries]
        body = {"base_tree": commit.base_tree, "tree": entries}
        if not entries:
            return  # an empty commit, or a merge that takes one side as it is
        tree = self._create_object("create a tree", "/git/trees", body)
        _require_same("the change", commit.tree, tree["sha"])

    def _create_commit(self, commit: LocalCommit, created_ids: dict[str, str]) -> tuple[str, bool]:
        body = {
            "message": commit.message,
            "tree": commit.tree,
            "parents": [created_ids.get(parent, parent) for parent in commit.parents],
        }
        answer = self._create_object("create a commit", "/git/commits", body)
        _require_same("the commit's tree", commit.tree, answer["tree"]["sha"])
        return str(answer["sha"]), _is_signed(answer)

    def _move_branch(self, branch: str, commit: str, previous: str) -> None:
        """Create the branch, or fast-forward it. Raises _Refused if it points to anything else."""

        def write() -> None:
            try:
                if previous:
                    body = {"sha": commit, "force": False}
                    self._request("PATCH", f"/git/refs/heads/{quote(branch)}", body)
                else:
                    ref = {"ref": f"refs/heads/{branch}", "sha": commit}
                    self._request("POST", "/git/refs", ref)
            except github.GithubException as error:
                message = str(error.data).lower()
                if error.status == 422 and (
                    "already exists" in message or "fast forward" in message
                ):
                    raise _Refused from None
                raise

        attempts: list[str] = []

        def attempt() -> None:
            # The response of an earlier attempt may have been lost: look before writing again.
            if not attempts or self._tip(branch) != commit:
                attempts.append(commit)
                write()

        self._access.retry_until_success(f"write {branch}", _PERMISSION, attempt)

    def _create_object(self, operation: str, path: str, body: dict[str, Any]) -> Any:
        """Create a git object.

        This is safe to repeat after a failure that may hide a success: an unused object has no
        effect.
        """
        return self._access.retry_until_success(
            operation, _PERMISSION, lambda: self._request("POST", path, body)
        )

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        url = f"{self._repository.url}{path}"
        _, answer = self._repository.requester.requestJsonAndCheck(method, url, input=body)
        return answer


class _Refused(Exception):
    """The branch exists already, or its tip is not an ancestor of the commit."""


def _entry(entry: NewEntry) -> dict[str, Any]:
    kind = "commit" if entry.mode == "160000" else "blob"
    return {"path": entry.path, "mode": entry.mode, "type": kind, "sha": entry.id}


def _require_same(name: str, local_id: str, created_id: object) -> None:
    if created_id != local_id:
        raise ForgeError(
            f"GitHub created {name} with the id {str(created_id)[:12]} instead of "
            f"{local_id[:12]}, so nothing was published",
            _UNSIGNED_NEXT_STEP,
        )


def _is_signed(commit: Any) -> bool:
    return bool((commit.get("verification") or {}).get("verified"))
