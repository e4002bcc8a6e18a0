"""Settings of how changes, reviews and comments appear on GitHub."""

from typing import Literal

from pydantic import field_validator
from pydantic_settings import BaseSettings

from resolver.config.declaration import StructuredSetting, part, setting
from resolver.models.pull_request import ReviewVerdict
from resolver.models.repository import PullRequestPreferences, Reviewer


class CommentIntervals(StructuredSetting):
    """Seconds between two accesses to comments during a run."""

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


class PublishingSettings(BaseSettings):
    """Settings of pull requests, reviews and comments."""

    draft: Literal["auto", "always", "never"] = setting(
        "auto",
        "Whether pull requests are opened as drafts. `auto`: unless the work is done, the checks "
        "that were run on it passed, and nothing was edited after them. `always` (or true), "
        "`never` (or false).",
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
    )
    progress_comments: bool = setting(
        True,
        "Post a comment as soon as a run starts, update it with the progress of the run, and turn "
        "it into the final comment.",
        option=False,
    )
    comment_interval_seconds: CommentIntervals = setting(
        CommentIntervals(),
        "How often comments are edited and read during a run. Raise the intervals if Resolver "
        "reaches GitHub's rate limits.",
        option=False,
    )

    @field_validator("draft", mode="before")
    @classmethod
    def _accept_boolean_draft(cls, value: object) -> object:
        option = str(value).strip().lower()
        return {"true": "always", "false": "never"}.get(option, option)

    @field_validator("reviewers")
    @classmethod
    def _reviewers_are_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = set(value) - {"requester", "codeowners", "none"}
        if unknown:
            raise ValueError(f"{sorted(unknown)[0]!r} is none of requester, codeowners, none")
        if "none" in value and len(value) > 1:
            raise ValueError("none stands alone")
        return () if value == ("none",) else value

    @field_validator("review_verdicts")
    @classmethod
    def _verdicts_are_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for verdict in value:
            if verdict not in {ReviewVerdict.REQUEST_CHANGES, ReviewVerdict.APPROVE}:
                raise ValueError(f"{verdict!r} is not one of request_changes, approve")
        return value

    @property
    def pull_request_preferences(self) -> PullRequestPreferences:
        """The reviewers, labels and assignment that pull requests get."""
        known: tuple[Reviewer, ...] = ("requester", "codeowners")
        return PullRequestPreferences(
            reviewers=tuple(reviewer for reviewer in known if reviewer in self.reviewers),
            labels=self.pull_request_labels,
            assign_requester=self.assign_requester,
        )
