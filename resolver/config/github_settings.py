"""Settings of GitHub: who may start work and how, and how the result is published."""

import re
from pathlib import Path
from typing import Literal

from pydantic import SecretStr, field_validator

from resolver.config.access_policy import AccessPolicy, Level
from resolver.config.model_settings import setting
from resolver.config.quota_settings import QuotaSettings
from resolver.models.repository import PullRequestPreferences, Reviewer


class GitHubSettings(QuotaSettings):
    """Settings of triggers, branches, pull requests, reviews and comments."""

    # Access and triggers
    allowed_users: tuple[str, ...] = setting(
        (), "Logins that may start work without write access, including bots.", option=False
    )
    allowed_teams: tuple[str, ...] = setting(
        (),
        "Teams, as ORG/TEAM, whose members may start work without write access. The token needs "
        "`members: read` on the organization.",
        option=False,
    )
    review_teams: tuple[str, ...] = setting(
        (),
        "Teams, as ORG/TEAM, or TEAM for one of the repository owner's. A review that is "
        "requested from one of them is done as if it were requested from Resolver's account.",
        option=False,
    )
    denied_users: tuple[str, ...] = setting(
        (), "Logins that may never start work, whatever their permission.", option=False
    )
    required_permission: Level = setting(
        "write",
        "Permission on the repository that people need to start work: `triage`, `write`, "
        "`maintain` or `admin`.",
        option=False,
    )
    refusals: Literal["comment", "silent"] = setting(
        "comment",
        "How a person who may not start work is told: by a one-line comment, or not at all. The "
        "log and the summary of the job say it in either case.",
        option=False,
    )
    fix_failing_checks: Literal["none", "own", "default-branch", "all"] = setting(
        "none",
        "Whose failing checks start work: those of Resolver's own open pull requests (`own`), "
        "those of the default branch (`default-branch`), or both (`all`). See triggers.md.",
        option=False,
    )
    max_check_fixes: int = setting(
        2,
        "Maximum number of runs for the failing checks of one pull request, or of one issue about "
        "the default branch.",
        option=False,
        ge=1,
        le=20,
    )
    sweep_issues: int = setting(5, "Maximum number of runs of a sweep.", option=False, ge=1)
    sweep_total: float = setting(
        10.0, "Maximum cost of a sweep in US dollars.", option=False, gt=0, allow_inf_nan=False
    )

    # Pull requests
    draft: Literal["auto", "always", "never"] = setting(
        "auto",
        "Whether pull requests are opened as drafts. `auto`: unless the work is done, the checks "
        "that were run on it passed, and nothing was edited after them. `always` (or true), "
        "`never` (or false).",
        repository=True,
    )
    base_branch: str = setting(
        "",
        "Branch that work on an issue starts from and that its pull request targets; the default "
        "branch when empty.",
        repository=True,
    )
    reviewers: tuple[str, ...] = setting(
        ("requester",),
        "Who is asked to review a pull request that is not a draft: `requester` (the person who "
        "asked for the work), `codeowners` (of the changed files), both, or `none`.",
        repository=True,
        option=False,
    )
    pull_request_labels: tuple[str, ...] = setting(
        (), "Labels that are added to pull requests.", repository=True, option=False
    )
    assign_requester: bool = setting(
        False,
        "Assign pull requests to the person who asked for them.",
        repository=True,
        option=False,
    )
    signed_commits: bool = setting(
        False,
        "Create commits through GitHub's API, which signs those of a GitHub App or an Action. "
        "Otherwise commits are pushed with git, unsigned.",
        repository=True,
        option=False,
    )

    # Progress comment and final comment
    progress_comments: bool = setting(
        True,
        "Post a comment as soon as a run starts, update it with the progress of the run, and turn "
        "it into the final comment.",
        option=False,
    )
    progress_interval: float = setting(
        15.0, "Seconds between two edits of the progress comment.", option=False, ge=1, le=3600
    )
    last_word_time: float = setting(
        75.0,
        "Seconds for which Resolver retries posting the final comment of a run when GitHub does "
        "not accept it.",
        option=False,
        ge=0,
        le=600,
    )
    write_retry_seconds: float = setting(
        240.0, "Seconds for which failed writes to GitHub are retried.", option=False, ge=0, le=3600
    )
    public_url: str = setting(
        "",
        "Address at which people reach this server, like `https://resolver.example.org`. Comments "
        "then link to a live page of the run, which anybody who has the link can read. No page "
        "and no link when empty. See server.md.",
        option=False,
    )

    @field_validator("public_url")
    @classmethod
    def _public_url_is_an_address(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[\w.:\[\]-]+(?:/[\w.~/-]*)?", value, re.A):
            raise ValueError("it is not an address like https://resolver.example.org")
        return value.rstrip("/")

    # Review rounds
    resolve_threads: Literal["none", "addressed"] = setting(
        "none",
        "Which review threads are marked as resolved after a round of review: `none`, because "
        "that is up to the reviewer, or those in which Resolver did what was asked (`addressed`).",
        repository=True,
        option=False,
    )

    # Authentication as a GitHub App
    app_id: str | None = setting(
        None,
        "GitHub App to authenticate as, by app id or client id. Needs `app_private_key`. "
        "Preferred over a token: each run gets an installation token for its repository only.",
        "GITHUB_APP_ID",
        option=False,
    )
    app_private_key: SecretStr | None = setting(
        None,
        "Private key of the GitHub App: the content of its PEM file, or the path of that file.",
        "GITHUB_APP_PRIVATE_KEY",
        option=False,
    )

    @field_validator("app_private_key")
    @classmethod
    def _private_key_is_pem(cls, value: SecretStr | None) -> SecretStr | None:
        return value and SecretStr(_pem(value.get_secret_value()))

    # Branches
    base_moved: Literal["leave", "rebase", "merge"] = setting(
        "leave",
        "What happens before a new pull request is opened if its base branch got new commits "
        "during the run: nothing, so that what was tested is proposed (`leave`), the commit is "
        "rebased onto them (`rebase`), or they are merged in (`merge`); only if git can do it "
        "without conflicts. If somebody pushed to an existing branch of a pull request during the "
        "run, `merge` merges too, and the two others put the commit on top.",
        repository=True,
        option=False,
    )
    fork_changes: Literal["push", "branch", "patch"] = setting(
        "push",
        "Where a change to a pull request from a fork goes. `push`: to the branch of the fork if "
        "the author allows edits by maintainers, else into the comment as a patch. `branch`: to a "
        "new branch of this repository with a separate pull request, which lets the fork's code "
        "run in this repository's CI. `patch`: always into the comment.",
        option=False,
    )

    # Images in issues and comments
    pictures: int = setting(
        4,
        "Maximum pictures of an issue that are fetched for models with image input; 0 for none.",
        option=False,
        ge=0,
        le=8,
    )
    picture_hosts: tuple[str, ...] = setting(
        (),
        "Further hosts that pictures are fetched from, with their ports if they have one: for an "
        "Enterprise Server that keeps its uploads on another host.",
        option=False,
    )

    @field_validator("draft", mode="before")
    @classmethod
    def _draft_may_be_yes_or_no(cls, value: object) -> object:
        said = str(value).strip().lower()
        return {"true": "always", "false": "never"}.get(said, said)

    @field_validator("reviewers")
    @classmethod
    def _reviewers_are_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = set(value) - {"requester", "codeowners", "none"}
        if unknown:
            raise ValueError(f"{sorted(unknown)[0]!r} is none of requester, codeowners, none")
        if "none" in value and len(value) > 1:
            raise ValueError("none stands alone")
        return () if value == ("none",) else value

    @field_validator("allowed_teams")
    @classmethod
    def _teams_have_an_organization(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for team in value:
            if not re.fullmatch(r"[A-Za-z0-9][\w-]*/[A-Za-z0-9][\w.-]*", team, re.A):
                raise ValueError(f"{team!r} is no team: give it as ORG/TEAM")
        return value

    @field_validator("review_teams")
    @classmethod
    def _teams_are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for team in value:
            if not re.fullmatch(r"(?:[A-Za-z0-9][\w-]*/)?[A-Za-z0-9][\w.-]*", team, re.A):
                raise ValueError(f"{team!r} is no team: give it as ORG/TEAM")
        return value

    @property
    def who_may(self) -> AccessPolicy:
        """The access policy: which accounts may start work."""
        return AccessPolicy(
            users=self.allowed_users,
            teams=self.allowed_teams,
            denied=self.denied_users,
            level=self.required_permission,
        )

    @property
    def has_app(self) -> bool:
        """True if the id or the key of a GitHub App is set, even if the other is missing."""
        return self.app_id is not None or self.app_private_key is not None

    @property
    def wishes(self) -> PullRequestPreferences:
        """The reviewers, labels and assignment that pull requests get."""
        known: tuple[Reviewer, ...] = ("requester", "codeowners")
        return PullRequestPreferences(
            reviewers=tuple(each for each in known if each in self.reviewers),
            labels=self.pull_request_labels,
            assign_requester=self.assign_requester,
        )


def _pem(given: str) -> str:
    """Return the content of a PEM file, given as that content or as a path.

    Some ways to pass a value can't contain line breaks; then they are written as `\\n`.

    Raises ValueError if the value is neither.
    """
    if "-----BEGIN" in given:
        return given if "\n" in given.strip() else given.replace("\\n", "\n")
    try:
        text = Path(given).expanduser().read_text(encoding="ascii")
    except (OSError, ValueError, RuntimeError):  # RuntimeError: `~` can't be expanded
        raise ValueError("neither the text of a PEM file nor the path of one") from None
    if "-----BEGIN" not in text:
        raise ValueError("the file is no PEM file")
    return text
