"""Creates commits through GitHub's Git Data API, so that GitHub signs them.

GitHub signs commits that are created with the installation token of an App or an Action and that
name no author; the author is then that account. A commit from the host is created again from the
same contents, and its tree must get the same id, else nothing is published. Branches are only ever
fast-forwarded.

Source:
https://docs.github.com/authentication/managing-commit-signature-verification/about-commit-signature-verification#signature-verification-for-bots
"""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import github
from github.Repository import Repository

from resolver.errors import BranchTaken, ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.comments.find_or_create import branch_tip
from resolver.models.repository import LocalCommit, NewEntry, PublishedCommit

_PERMISSION = "contents: write"


@dataclass(frozen=True)
class SignedCommits:
    """Puts signed commits on branches of one repository. All methods raise ForgeError."""

    access: GitHubAccess
    repository: Repository

    def put(
        self,
        commit: LocalCommit,
        blobs: Iterable[tuple[str, bytes]],
        branch: str,
        previous: str | None,
    ) -> PublishedCommit:
        """Create the commit on GitHub, move `branch` to it and return it.

        `blobs` are its new ones, by id. `previous` is the current tip of the branch, None for a new
        branch. Calling this again finds the existing result. Raises BranchTaken if the branch
        points to anything else.
        """
        tip = branch_tip(self.access, self.repository, branch)
        if tip is not None and tip != previous:
            return self._require_published(tip, commit, branch)
        # Nothing is visible to anybody until the branch is moved: unreferenced objects are harmless
        # if this fails.
        for id, content in blobs:
            data = {"content": base64.b64encode(content).decode("ascii"), "encoding": "base64"}
            _require_same("a file", id, self._create("/git/blobs", data)["sha"])
        entries = [_entry(entry) for entry in commit.entries]
        if entries:  # an empty commit has none, nor has a merge that takes one side as it is
            tree = self._create("/git/trees", {"base_tree": commit.base_tree, "tree": entries})
            _require_same("the change", commit.tree, tree["sha"])
        values = {"message": commit.message, "tree": commit.tree, "parents": list(commit.parents)}
        created = self._create("/git/commits", values)
        _require_same("the commit's tree", commit.tree, created["tree"]["sha"])
        if self._move_branch(branch, created["sha"], previous):
            return PublishedCommit(id=created["sha"], signed=_is_signed(created))
        tip = branch_tip(self.access, self.repository, branch)
        return self._require_published(tip, commit, branch)

    def _require_published(
        self, tip: str | None, commit: LocalCommit, branch: str
    ) -> PublishedCommit:
        """Return the branch's tip if an earlier attempt created it from the same commit.

        The ids cannot be compared, since GitHub sets another author and date. Raises BranchTaken if
        the tip is anything else.
        """
        if tip is not None:
            with self.access.wrap_errors(f"read the commit {tip[:12]}", "contents: read"):
                found = self._request("GET", f"/git/commits/{tip}")
            parents = tuple(str(parent["sha"]) for parent in found["parents"])
            is_same = (found["tree"]["sha"], parents) == (commit.tree, commit.parents)
            if is_same and str(found["message"]).strip() == commit.message.strip():
                return PublishedCommit(id=tip, signed=_is_signed(found))
        raise BranchTaken(
            f"the branch {branch} contains other commits",
            "delete it there, or choose another name",
        )

    def _move_branch(self, branch: str, commit: str, previous: str | None) -> bool:
        """Create the branch, or fast-forward it. Return False if it points to anything else."""

        def attempt() -> bool:
            try:
                if previous is None:
                    ref = {"ref": f"refs/heads/{branch}", "sha": commit}
                    self._request("POST", "/git/refs", ref)
                else:
                    target = {"sha": commit, "force": False}
                    self._request("PATCH", f"/git/refs/heads/{quote(branch)}", target)
            except github.GithubException as error:
                message = str(error.data).lower()
                # It may exist because the answer to an earlier attempt was lost.
                if error.status == 422 and (
                    "already exists" in message or "fast forward" in message
                ):
                    return False
                raise
            return True

        return self.access.retry_until_success(f"write {branch}", _PERMISSION, attempt)

    def _create(self, path: str, body: dict[str, Any]) -> Any:
        """Create a git object.

        This is safe to repeat after a failure that may hide a success: an unused object has no
        effect.
        """
        return self.access.retry_until_success(
            "create a signed commit", _PERMISSION, lambda: self._request("POST", path, body)
        )

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        url = f"{self.repository.url}{path}"
        _, answer = self.repository.requester.requestJsonAndCheck(method, url, input=body)
        return answer


def _entry(entry: NewEntry) -> dict[str, Any]:
    kind = "commit" if entry.mode == "160000" else "blob"
    return {"path": entry.path, "mode": entry.mode, "type": kind, "sha": entry.id}


def _require_same(name: str, local_id: str, created_id: object) -> None:
    if created_id != local_id:
        raise ForgeError(
            f"GitHub created {name} with the id {str(created_id)[:12]} instead of "
            f"{local_id[:12]}, so nothing was published",
            "set signed_commits to false, so that it is pushed with git",
        )


def _is_signed(commit: Any) -> bool:
    return bool((commit.get("verification") or {}).get("verified"))
