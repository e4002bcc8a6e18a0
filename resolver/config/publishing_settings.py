"""Settings of how changes, reviews and comments appear on GitHub."""

from typing import ClassVar, Literal

from pydantic import field_validator

from resolver.config.declaration import SettingGroup, StructuredSetting, part, setting
from resolver.config.documentation import DOCS


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
    pull_request_labels: tuple[str, ...] = setting(
        (),
        "Labels that are added to pull requests.",
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
