"""Tests of recognizing why GitHub refused a push or a request, from its own messages."""

import pytest

from resolver.errors import Cause
from resolver.models.known_failures import (
    OUTAGES,
    git_failure_reason,
    push_failure,
    response_failure,
)

PUSHES: list[tuple[str, Cause]] = [
    ("remote: Permission to o/r.git denied to github-actions[bot].\nfatal: unable to access "
     "'https://github.com/o/r/': The requested URL returned error: 403", "push_permission"),
    ("remote: Write access to repository not granted.\nfatal: unable to access "
     "'https://github.com/o/r.git/': The requested URL returned error: 403", "push_permission"),
    ("! [remote rejected] a -> a (refusing to allow a GitHub App to create or update workflow "
     "`.github/workflows/ci.yml` without `workflows` permission)", "workflow_files"),
    ("! [remote rejected] a -> a (refusing to allow a Personal Access Token to create or update "
     "workflow `.github/workflows/ci.yml` without `workflow` scope)", "workflow_files"),
    ("! [remote rejected] a -> a (refusing to allow an OAuth App to create or update workflow "
     "`.github/workflows/ci.yml` without `workflow` scope)", "workflow_files"),
    ("remote: error: GH006: Protected branch update failed for refs/heads/agent/x.\nremote: error: "
     "Changes must be made through a pull request.\n ! [remote rejected] (protected branch hook "
     "declined)", "branch_protected"),
    ("remote: error: GH013: Repository rule violations found for refs/heads/agent/x.\nremote: - "
     "Cannot create ref due to creations being restricted.\n (push declined due to repository rule "
     "violations)", "push_rule"),
    ("remote: error: GH013: Repository rule violations found for refs/heads/x.\nremote: - GITHUB "
     "PUSH PROTECTION\nremote: - Push cannot contain secrets", "secret_scanning"),
    ("remote: error: GH001: Large files detected. You may want to try Git Large File Storage\n"
     "remote: error: File a.bin is 120.00 MB; this exceeds GitHub's file size limit",
     "large_files"),
    ("remote: This repository was archived so it is read-only.\nfatal: unable to access "
     "'https://github.com/o/r/': The requested URL returned error: 403", "archived"),
    ("remote: Invalid username or token. Password authentication is not supported for Git "
     "operations.\nfatal: Authentication failed for 'https://github.com/o/r.git/'", "token"),
    ("remote: The 'x' organization has enabled or enforced SAML SSO.\nfatal: The requested URL "
     "returned error: 403", "sso"),
    ("fatal: unable to access 'https://github.com/o/r/': The requested URL returned error: 301",
     "moved"),
    ("! [remote rejected] a -> a (pre-receive hook declined)", "push_rule"),
    ("remote: error: GH007: Your push would publish a private email address.", "push_rule"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "cause"), PUSHES)
def test_the_reason_of_a_refused_push_is_recognized(said: str, cause: Cause) -> None:
    known = push_failure(said)
    assert known is not None and known.cause == cause
    assert known.next_step[0].islower() and not known.next_step.endswith(".")


def test_a_network_failure_is_not_a_refusal() -> None:
    assert push_failure("fatal: unable to access 'https://x/': Could not resolve host: x") is None


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("GitHub Actions is not permitted to create or approve pull requests.",
         "pull_requests_off"),
        ("Repository was archived so is read-only.", "archived"),
        ("Unable to create comment because issue is locked.", "locked"),
        ("Issues are disabled for this repo", "issues_off"),
        ("Resource protected by organization SAML enforcement. You must grant access", "sso"),
        ("Moved Permanently", "moved"),
    ],
)  # fmt: skip
def test_the_reason_of_an_api_refusal_is_recognized(said: str, cause: Cause) -> None:
    known = response_failure(said)
    assert known is not None and known.cause == cause


def test_the_cause_of_a_missing_permission_is_left_to_the_caller() -> None:
    assert response_failure("Resource not accessible by integration") is None


@pytest.mark.parametrize(
    "said",
    [
        "fatal: unable to access 'https://x/': Could not resolve host: x",
        "fatal: unable to access 'https://x/': Failed to connect to x port 443: refused",
        "fatal: unable to access 'https://x/': The requested URL returned error: 503",
        "error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502",
        "fatal: unable to access 'https://x/': Recv failure: Connection reset by peer",
    ],
)
def test_git_without_a_working_server_is_an_outage(said: str) -> None:
    known = git_failure_reason(said)
    assert known is not None and known.cause in OUTAGES
