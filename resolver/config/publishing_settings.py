"""Settings of how changes, reviews and comments appear on GitHub."""

from typing import ClassVar, Literal

from pydantic import field_validator

from resolver.config.declaration import SettingGroup, StructuredSetting, part, setting
from resolver.config.documentation import DOCS
from resolver.models.pull_request import ReviewVerdict
from resolver.models.repository import PullRequestPreferences


class CommentIntervals(StructuredSetting):
    """Seconds between two requests of the same kind during a run."""

    progress: float = part(
        15.0, "Seconds between two edits of the progress comment.", ge=1, le=3600
    )
    commands: float = part(
        10.0,
        "Seconds between two checks for comments that control a run in progress, when no webhook "
        "delivers them; 0 disables the checks.",
        ge=0,
        le=600,
    )
    writes: float = part(
        1.0,
        "Minimum number of seconds between two writes to GitHub's API, which asks for one second; "
        "0 is for servers without rate limits.",
        ge=0,
        le=60,
    )


class PublishingSettings(SettingGroup):
    """Settings of pull requests, reviews and comments."""

    title: ClassVar[str] = "Publishing"
    when: ClassVar[str] = (
        "Change these to decide how changes, reviews and comments appear on GitHub."
    )

    draft: Literal["auto", "always", "never"] = setting(
        "auto",
        "Whether pull requests are opened as drafts: `always` (or true), `never` (or false), or "
        "unless the work is complete and verified or checked (`auto`). "
        f"See {DOCS}/explanation/verification.md.",
        repository=True,
        action_input=True,
    )
    request_review: bool = setting(
        True,
        "Ask the person who asked for the work to review a pull request that is not a draft. The "
        "owners of the changed files are asked by GitHub, if the repository has a CODEOWNERS file.",
        repository=True,
        option=False,
        action_input=True,
    )
    pull_request_labels: tuple[str, ...] = setting(
        (),
        "Labels that are added to pull requests.",
        repository=True,
        option=False,
        action_input=True,
    )
    assign_requester: bool = setting(
        False,
        "Assign pull requests to the person who asked for them.",
        repository=True,
        option=False,
        action_input=True,
    )
    signed_commits: bool = setting(
        False,
        "Create commits through GitHub's API, which signs those of a GitHub App or an Action. "
        "Otherwise commits are pushed with git, unsigned.",
        repository=True,
        option=False,
        action_input=True,
    )
    protected_paths: tuple[str, ...] = setting(
        (
            ".github/workflows/**",
            ".github/actions/**",
            ".github/CODEOWNERS",
            "CODEOWNERS",
            "docs/CODEOWNERS",
            ".github/resolver.yml",
            ".gitmodules",
        ),
        "Paths that a change must not touch. A change that does is kept but not published.",
        option=False,
    )
    review_verdicts: tuple[str, ...] = setting(
        (),
        "Verdicts that a review may give besides a plain comment: `request_changes`, `approve`. "
        "An approval can count towards the reviews that branch protection requires.",
        option=False,
    )
    resolve_threads: Literal["none", "addressed"] = setting(
        "none",
        "Which review threads are marked as resolved after a round of review: `none`, because "
        "that is up to the reviewer, or those in which Resolver did what was asked (`addressed`).",
        repository=True,
        option=False,
        action_input=True,
    )
    progress_comments: bool = setting(
        True,
        "Post a comment as soon as a run starts, update it with the progress of the run, and turn "
        "it into the final comment.",
        option=False,
        action_input=True,
    )
    comment_interval_seconds: CommentIntervals = setting(
        CommentIntervals(),
        "Intervals at which comments are edited and read, and at which GitHub is written to. Raise "
        "them if Resolver reaches GitHub's rate limits.",
        option=False,
    )

    @field_validator("draft", mode="before")
    @classmethod
    def _accept_boolean_draft(cls, value: object) -> object:
        option = str(value).strip().lower()
        return {"true": "always", "false": "never"}.get(option, option)

    @field_validator("review_verdicts")
    @classmethod
    def _verdicts_are_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for verdict in value:
            if verdict not in {ReviewVerdict.REQUEST_CHANGES, ReviewVerdict.APPROVE}:
                raise ValueError(f"{verdict!r} is not one of request_changes, approve")
        return value

    @property
    def pull_request_preferences(self) -> PullRequestPreferences:
        """The review request, labels and assignment that pull requests get."""
        return PullRequestPreferences(
            request_review=self.request_review,
            labels=self.pull_request_labels,
            assign_requester=self.assign_requester,
        )
