"""Settings of how changes, reviews and comments appear on GitHub."""

from typing import ClassVar, Literal

from pydantic import field_validator

from resolver.config.declaration import SettingGroup, setting
from resolver.config.documentation import DOCS


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

    @field_validator("draft", mode="before")
    @classmethod
    def _accept_boolean_draft(cls, value: object) -> object:
        option = str(value).strip().lower()
        return {"true": "always", "false": "never"}.get(option, option)
