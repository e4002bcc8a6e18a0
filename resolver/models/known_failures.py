"""Known reasons why GitHub refuses a request or a push, and what a person can do about each.

They are recognized by GitHub's messages: of pushes (`remote: error: GH006 ...`) and of API answers.
Source: https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api,
https://docs.github.com/en/code-security/secret-scanning/working-with-push-protection
"""

import re
from dataclasses import dataclass

from resolver.errors import Cause

OUTAGES: frozenset[Cause] = frozenset({"forge_down", "rate_limit", "provider_down"})
"""Causes that pass without anyone doing something about them."""


@dataclass(frozen=True)
class KnownFailure:
    """The messages of a failure, and what a person can do about it.

    cause: None if it has no name.
    """

    cause: Cause | None
    pattern: re.Pattern[str]
    next_step: str


def _known_failure(cause: Cause | None, pattern: str, next_step: str) -> KnownFailure:
    """Return a known failure whose pattern ignores case."""
    return KnownFailure(cause, re.compile(pattern, re.IGNORECASE), next_step)


_COMMON_FAILURES = (
    _known_failure(
        "archived",
        r"archived so (it )?is read-only|repository was archived",
        "unarchive the repository under Settings > General > Danger Zone, then ask again",
    ),
    _known_failure(
        "sso",
        r"single sign-on|\bSAML\b",
        "authorize the token for the organization's single sign-on",
    ),
    _known_failure(
        "moved",
        r"repository moved|moved permanently|base from redirection|returned error: 30[1278]",
        "the repository has a new name: ask there, or update the address",
    ),
)

_PUSH_FAILURES = (
    _known_failure(
        "workflow_files",
        r"refusing to allow .{0,80} (create or update|update or create) workflow"
        r"|without `?workflows?`?",
        "give the token the permission `workflows: write` (the scope `workflow` of a classic "
        "token; an Action's own GITHUB_TOKEN can't have it), or ask for a change without it",
    ),
    _known_failure(
        "secret_scanning",
        r"GH009|push protection|cannot contain secrets|secrets? detected",
        "take the secret out of the change and revoke it; if it is not a secret, allow it at the "
        "address that GitHub names",
    ),
    _known_failure(
        "branch_protected",
        r"GH006|protected (branch|ref)",
        "let the bot bypass the branch's rules (Settings > Branches), or apply the change by hand; "
        "branches that begin with agent/ need no protection",
    ),
    _known_failure(
        "large_files",
        r"GH001|large files detected|exceeds GitHub'?s file size limit",
        "ask for a change without the large file, or store it with Git LFS",
    ),
    _known_failure(
        "push_rule",
        r"GH013|GH00[2-9]|rule violations|declined due to|pre-receive hook declined",
        "look at the rule that GitHub names (Settings > Rules > Rulesets), and let the bot pass it "
        "for branches that begin with agent/",
    ),
    _known_failure(
        "token",
        r"authentication failed|invalid username or|could not read username|error: 401|HTTP 401",
        "the token is wrong or has expired: set a valid one that may access this repository",
    ),
    _known_failure(
        "push_permission",
        r"permission to .{0,200} denied|write access to repository not granted"
        r"|error: 403|HTTP 403",
        "check that the token is valid and may access this repository: it needs `contents: write`",
    ),
)

_NETWORK_FAILURE = _known_failure(
    "forge_down",
    r"error: (429|5\d\d)|HTTP (429|5\d\d)|could not resolve|failed to connect|couldn't connect"
    r"|connection (refused|reset|timed out|was)|empty reply|operation timed out|SSL_"
    r"|RPC failed; curl|hung up unexpectedly|early EOF|unexpected disconnect",
    "check the network and the proxy settings, then run it again",
)

_ACCESS_FAILURE = _known_failure(
    None, r"unable to access", "check the network and the proxy settings, then run it again"
)

_GIT_FAILURES = (
    _known_failure(
        None, r"returned error: 404|repository .*not found", "check the name and the token"
    ),
    _known_failure(None, r"No space left", "free some disk space and run it again"),
    _known_failure(
        None,
        r"out of memory|malloc|cannot allocate memory",
        "a git command may use no more of it; look for folders that contain one another many times "
        "over",
    ),
    _known_failure(
        None,
        r"Operation too slow",
        "the server sent almost nothing for a minute: it is overloaded, or the repository has "
        "something that takes long to send, such as thousands of folders within one another; try "
        "it with `git clone`, and run it again if that works",
    ),
)

_RESPONSE_FAILURES = (
    _known_failure(
        "pull_requests_off",
        r"not permitted to create or approve pull requests",
        "allow it under Settings > Actions > General > Workflow permissions "
        "(Allow GitHub Actions to create and approve pull requests)",
    ),
    _known_failure(
        "push_rule",
        r"rule violations found|creation being restricted",
        "look at the rule that GitHub names (Settings > Rules > Rulesets), and let the bot pass it",
    ),
    _known_failure(
        "base_gone",
        r"PullRequest(:| )?(field )?base|base (is )?invalid",
        "restore the branch that the pull request is to be merged into, or name another one in "
        "the setting base_branch",
    ),
    _known_failure(
        "locked",
        r"\b(issue|conversation|pull request) (is|has been) locked|because issue is locked",
        "unlock the conversation, or give the bot write access",
    ),
    _known_failure(
        "issues_off",
        r"issues (are|has been|have been) disabled",
        "switch issues on under Settings > General > Features",
    ),
)


def push_failure(message: str) -> KnownFailure | None:
    """Return the reason why git was refused, by the messages of git and of the server, or None."""
    return _first_match((*_COMMON_FAILURES, *_PUSH_FAILURES), message)


def git_failure_reason(message: str) -> KnownFailure | None:
    """Return the reason why a git command failed, by its messages and the server's, or None."""
    failures = (*_COMMON_FAILURES, *_PUSH_FAILURES, *_GIT_FAILURES, _NETWORK_FAILURE)
    return _first_match((*failures, _ACCESS_FAILURE), message)


def response_failure(message: str) -> KnownFailure | None:
    """Return the reason why the API refused a request, by the message in its answer, or None."""
    return _first_match((*_COMMON_FAILURES, *_RESPONSE_FAILURES), message)


def _first_match(failures: tuple[KnownFailure, ...], message: str) -> KnownFailure | None:
    """Return the first failure whose pattern matches. The specific ones come first in each list."""
    return next((failure for failure in failures if failure.pattern.search(message)), None)
