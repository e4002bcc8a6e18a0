"""The settings of the forge: who is listened to, and how the work is made public."""

import re
from pathlib import Path
from typing import Literal

from pydantic import SecretStr, field_validator

from resolver.config.access_policy import AccessPolicy, Level
from resolver.config.model_settings import setting
from resolver.config.quota_settings import QuotaSettings
from resolver.models.conventions import PullRequestPreferences, Reviewer


class GitHubSettings(QuotaSettings):
    """Triggers, branches, pull requests, reviews, comments."""

    # who may start work, and by what
    allowed_users: tuple[str, ...] = setting(
        (), "Logins that may start work without write access, those of bots too.", option=False
    )
    allowed_teams: tuple[str, ...] = setting(
        (),
        "Teams, as ORG/TEAM, whose members may start work without write access; the token needs "
        "`members: read` of the organization.",
        option=False,
    )
    review_teams: tuple[str, ...] = setting(
        (),
        "Teams, as ORG/TEAM or TEAM of the repository's owner: a review that one of them is asked "
        "for is done as if our own account were asked.",
        option=False,
    )
    denied_users: tuple[str, ...] = setting(
        (), "Logins that are never listened to, whatever they may.", option=False
    )
    required_permission: Level = setting(
        "write",
        "What people need on the repository to start work: `triage`, `write`, `maintain` or "
        "`admin`.",
        option=False,
    )
    refusals: Literal["comment", "silent"] = setting(
        "comment",
        "How a person who may not start work is told: by one line on the thread, or not at all "
        "(the job's log and summary still say it).",
        option=False,
    )
    fix_failing_checks: Literal["none", "own", "default-branch", "all"] = setting(
        "none",
        "Whose failing checks start work: those of Resolver's own open pull requests, of the "
        "default branch, or of both; see triggers.md.",
        option=False,
    )
    max_check_fixes: int = setting(
        2,
        "Most runs for the failing checks of one pull request, or of one issue about the default "
        "branch.",
        option=False,
        ge=1,
        le=20,
    )
    sweep_issues: int = setting(5, "Most runs that a sweep begins.", option=False, ge=1)
    sweep_total: float = setting(
        10.0,
        "Most US dollars that the runs of a sweep may cost together.",
        option=False,
        gt=0,
        allow_inf_nan=False,
    )

    # what a pull request is like
    draft: Literal["auto", "always", "never"] = setting(
        "auto",
        "Whether pull requests are opened as drafts: `auto` unless the work is done and the checks "
        "that were run on it passed, with no edit after them, `always` (or true), `never` (or "
        "false).",
        repository=True,
    )
    base_branch: str = setting(
        "",
        "Branch that work on issues starts from and is proposed for; the default branch when "
        "empty.",
        repository=True,
    )
    reviewers: tuple[str, ...] = setting(
        ("requester",),
        "Who is asked to review a pull request that is no draft: `requester` (who asked for the "
        "work), `codeowners` (of the files it changes), both, or `none`.",
        repository=True,
        option=False,
    )
    pull_request_labels: tuple[str, ...] = setting(
        (), "Labels that pull requests get.", repository=True, option=False
    )
    assign_requester: bool = setting(
        False, "Assign pull requests to who asked for the work.", repository=True, option=False
    )
    signed_commits: bool = setting(
        False,
        "Make commits through GitHub's API, which signs those of an App or an Action; else they "
        "are pushed with git, unsigned.",
        repository=True,
        option=False,
    )

    # the one comment
    progress_comments: bool = setting(
        True,
        "Say at once that the work has begun, in the comment that will say how it ended, and how "
        "far it is while it goes on.",
        option=False,
    )
    progress_interval: float = setting(
        15.0, "Seconds between two edits of that comment.", option=False, ge=1, le=3600
    )
    last_word_time: float = setting(
        75.0,
        "Seconds for which it is tried again to say on the thread how a run ended, where the forge "
        "does not take it.",
        option=False,
        ge=0,
        le=600,
    )
    write_retry_seconds: float = setting(
        240.0, "Seconds for which failed writes are tried again.", option=False, ge=0, le=3600
    )
    public_url: str = setting(
        "",
        "Address at which people reach this server, like `https://resolver.example.org`: comments "
        "then link to a page that shows the run as it goes, for whoever has the link. No page and "
        "no link when empty; see server.md.",
        option=False,
    )

    @field_validator("public_url")
    @classmethod
    def _public_url_is_an_address(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[\w.:\[\]-]+(?:/[\w.~/-]*)?", value, re.A):
            raise ValueError("it is not an address like https://resolver.example.org")
        return value.rstrip("/")

    # review rounds
    resolve_threads: Literal["none", "addressed"] = setting(
        "none",
        "Which conversations on lines are marked as resolved when a round of review is done: none, "
        "because that is the reviewer's to say, or those in which Resolver did what was asked.",
        repository=True,
        option=False,
    )

    # as whom
    app_id: str | None = setting(
        None,
        "GitHub App to work as, by its id or client id. It needs `app_private_key`, and is "
        "stronger than a token: each run gets one of its own, for its repository alone.",
        "GITHUB_APP_ID",
        option=False,
    )
    app_private_key: SecretStr | None = setting(
        None,
        "Private key of the GitHub App: the text of its PEM file, or the file's path.",
        "GITHUB_APP_PRIVATE_KEY",
        option=False,
    )

    @field_validator("app_private_key")
    @classmethod
    def _private_key_is_pem(cls, value: SecretStr | None) -> SecretStr | None:
        return value and SecretStr(_pem(value.get_secret_value()))

    # work on branches
    base_moved: Literal["leave", "rebase", "merge"] = setting(
        "leave",
        "What is done before a new pull request is opened where its base branch has got commits "
        "meanwhile: nothing, so that what was tested is what is proposed (`leave`), the commit put "
        "on top of them (`rebase`), or they are merged in (`merge`); only where git can do it "
        "alone. On a branch that is there already, which somebody else has pushed to meanwhile, "
        "`merge` says the same and the two others put the commit on top.",
        repository=True,
        option=False,
    )
    fork_changes: Literal["push", "branch", "patch"] = setting(
        "push",
        "Where a change to a pull request from a fork goes: onto the fork's branch where its "
        "author lets maintainers edit it, else into the comment as a patch (`push`); onto a new "
        "branch of this repository with a pull request of its own, which lets the fork's code run "
        "in this repository's CI (`branch`); always into the comment (`patch`).",
        option=False,
    )

    # what is read
    pictures: int = setting(
        4,
        "Most pictures of an issue's texts that are fetched for models that see; 0 for none.",
        option=False,
        ge=0,
        le=8,
    )
    picture_hosts: tuple[str, ...] = setting(
        (),
        "Hosts that pictures are fetched from beside the forge's own and GitHub's, with their "
        "ports where they have one: where an Enterprise Server keeps its uploads.",
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
        """Who may start work."""
        return AccessPolicy(
            users=self.allowed_users,
            teams=self.allowed_teams,
            denied=self.denied_users,
            level=self.required_permission,
        )

    @property
    def has_app(self) -> bool:
        """Whether it works as a GitHub App, also where half of what that needs is missing."""
        return self.app_id is not None or self.app_private_key is not None

    @property
    def wishes(self) -> PullRequestPreferences:
        """Who is asked to look at a pull request, and how it is marked."""
        known: tuple[Reviewer, ...] = ("requester", "codeowners")
        return PullRequestPreferences(
            reviewers=tuple(each for each in known if each in self.reviewers),
            labels=self.pull_request_labels,
            assign_requester=self.assign_requester,
        )


def _pem(given: str) -> str:
    """The text of a private key. Where its lines can't be kept apart they come with `\\n`."""
    if "-----BEGIN" in given:
        return given if "\n" in given.strip() else given.replace("\\n", "\n")
    try:
        text = Path(given).expanduser().read_text(encoding="ascii")
    except (OSError, ValueError, RuntimeError):  # the last: of a `~` without a home
        raise ValueError("neither the text of a PEM file nor the path of one") from None
    if "-----BEGIN" not in text:
        raise ValueError("the file is no PEM file")
    return text
