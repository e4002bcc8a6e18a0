"""Inspects how a repository is set up for an agent, and what the token may do there.

Nothing is changed.
"""

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from github.GithubException import GithubException

from resolver.github.client.access import GitHubAccess, check_repository
from resolver.github.client.requester import repository_at
from resolver.github.client.resources import get_repository_file


class RepositoryAccess:
    """Answers questions about one repository.

    All methods raise ForgeError if GitHub can't be asked.
    """

    def __init__(self, access: GitHubAccess, repository: str) -> None:
        self._access = access
        self._name = check_repository(repository)
        self._requester = access.requester()

    @cached_property
    def page(self) -> Mapping[str, Any]:
        """The repository as the API returns it."""
        answer: Mapping[str, Any] = self._get("")
        return answer

    def may_push(self) -> bool:
        """Return True if the token may write contents.

        It asks for a branch at a commit that does not exist: GitHub reports the missing commit to a
        token with the permission, and the missing permission to any other.
        """
        return self._is_permitted("git/refs", {"ref": "refs/heads/agent/doctor", "sha": "0" * 40})

    def may_open_pulls(self) -> bool:
        """Return True if the token may open pull requests.

        It asks for a pull request from a branch to itself, which is always refused.
        """
        base = self.page["default_branch"]
        return self._is_permitted("pulls", {"title": "doctor", "head": base, "base": base})

    def _is_permitted(self, resource: str, body: Mapping[str, Any]) -> bool:
        """Return True if an impossible request is refused as such, not for a missing permission."""
        with self._access.wrap_errors(f"ask for {resource} of {self._name}"):
            try:
                path = f"/repos/{self._name}/{resource}"
                self._requester.requestJsonAndCheck("POST", path, input=body)
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
        answer = self._get("/actions/permissions/workflow", unknown_statuses={403, 404})
        return None if answer is None else bool(answer["can_approve_pull_request_reviews"])

    def rules(self, branch: str) -> frozenset[str]:
        """Return the types of the rules that apply to a branch, which need not exist.

        An older GitHub Enterprise Server has no rules.

        Source: https://docs.github.com/en/rest/repos/rules
        """
        # A redirect from an earlier name of the repository would lose the number per page.
        name = self.page["full_name"]
        path = f"/rules/branches/{branch}?per_page=100"
        rules = self._get(path, unknown_statuses={404}, repository=name)
        return frozenset(str(rule["type"]) for rule in rules or ())

    def file(self, path: str) -> bytes | None:
        """Return a file of the default branch, or None when it does not exist."""
        with self._access.wrap_errors(f"read {path} of {self._name}", "contents: read"):
            file = get_repository_file(repository_at(self._requester, self._name), path)
            return file.decoded_content if file else None

    def _get(
        self, path: str, unknown_statuses: Collection[int] = (), repository: str | None = None
    ) -> Any:
        """Return an answer, None if its status is one of `unknown_statuses`.

        repository: the present name of the repository, where a redirect is no answer.
        """
        with self._access.wrap_errors(f"read {self._name}{path}", "metadata: read"):
            try:
                return self._requester.requestJsonAndCheck(
                    "GET", f"/repos/{repository or self._name}{path}"
                )[1]
            except GithubException as error:
                if error.status not in unknown_statuses:
                    raise
        return None
