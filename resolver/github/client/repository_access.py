"""Inspects how a repository is set up for an agent, and what the token may do there.

Nothing is changed.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from github.GithubException import GithubException, UnknownObjectException

from resolver.github.client.access import GitHubAccess, check_repository
from resolver.github.client.requester import repository_at
from resolver.github.client.resources import get_repository_file

_MISSING_COMMIT = "0" * 40
"""A commit id that no repository has."""


class RepositoryAccess:
    """Answers questions about one repository.

    All methods raise ForgeError if GitHub can't be asked.
    """

    def __init__(self, access: GitHubAccess, repository: str) -> None:
        self._access = access
        self._name = check_repository(repository)
        self._repository = repository_at(access.requester(), self._name)

    @cached_property
    def page(self) -> Mapping[str, Any]:
        """The repository as the API returns it."""
        with self._access.wrap_errors(f"read {self._name}", "metadata: read"):
            requester = self._repository.requester
            answer: Mapping[str, Any]
            _, answer = requester.requestJsonAndCheck("GET", f"/repos/{self._name}")
            return answer

    def may_push(self) -> bool:
        """Return True if the token may write contents.

        It asks for a branch at a commit that does not exist: GitHub reports the missing commit to a
        token with the permission, and the missing permission to any other.
        """
        body = {"ref": "refs/heads/agent/doctor", "sha": _MISSING_COMMIT}
        return self._is_permitted("POST", "git/refs", body)

    def may_open_pulls(self) -> bool:
        """Return True if the token may open pull requests.

        It asks for a pull request from a branch to itself, which is always refused.
        """
        base = self.page["default_branch"]
        return self._is_permitted("POST", "pulls", {"title": "doctor", "head": base, "base": base})

    def _is_permitted(self, method: str, resource: str, body: Mapping[str, Any]) -> bool:
        """Return True if an impossible request is refused as such, not for a missing permission."""
        requester = self._repository.requester
        with self._access.wrap_errors(f"ask for {resource} of {self._name}"):
            try:
                path = f"/repos/{self._name}/{resource}"
                requester.requestJsonAndCheck(method, path, input=dict(body))
            except GithubException as error:
                # 404 also stands for a missing permission; 409 and 422 refuse the content of the
                # request.
                if error.status in {404, 409, 422}:
                    return error.status != 404
                if error.status == 403 and "not accessible by" in str(error.data):
                    return False
                raise
        return True

    def actions_may_open_pulls(self) -> bool | None:
        """Return True if the token of a GitHub Actions job may open pull requests.

        Return None when only an administrator can read it.
        """
        requester = self._repository.requester
        path = f"/repos/{self._name}/actions/permissions/workflow"
        with self._access.wrap_errors(f"read the Actions settings of {self._name}"):
            try:
                _, answer = requester.requestJsonAndCheck("GET", path)
            except GithubException as error:
                if error.status in {403, 404}:
                    return None
                raise
            return bool(answer["can_approve_pull_request_reviews"])

    def rules(self, branch: str) -> frozenset[str]:
        """Return the types of the rules that apply to a branch, which need not exist.

        Source: https://docs.github.com/en/rest/repos/rules
        """
        with self._access.wrap_errors(f"read the rules of {self._name}", "metadata: read"):
            path = f"/repos/{self._name}/rules/branches/{branch}"
            requester = self._repository.requester
            try:
                _, answer = requester.requestJsonAndCheck("GET", path, {"per_page": 100})
            except UnknownObjectException:
                return frozenset()  # an older GitHub Enterprise Server has no rules
            return frozenset(str(rule["type"]) for rule in answer)

    def file(self, path: str) -> bytes | None:
        """Return a file of the default branch, or None when it does not exist."""
        with self._access.wrap_errors(f"read {path} of {self._name}", "contents: read"):
            file = get_repository_file(self._repository, path)
            return file.decoded_content if file else None
