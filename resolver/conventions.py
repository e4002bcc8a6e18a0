"""How a repository writes: its pull request template, the owners of its files, the subjects of its
commits; and what its people wish of a pull request beside its words.

Made in `resolver.workspace.conventions` and from the settings, read by `resolver.forge`.
"""

from typing import Literal

from pydantic import Field

from resolver.nouns import Noun

Reviewer = Literal["requester", "codeowners"]


class Conventions(Noun):
    """Read at the default branch, where only people with write access have written."""

    template: str = Field(default="", description="Of pull requests; empty where there is none.")
    codeowners: str = Field(default="", description="The file CODEOWNERS, as it is.")
    subjects: tuple[str, ...] = Field(
        default=(), description="Subjects of the newest commits, newest first."
    )


class Wishes(Noun):
    """Who is asked to look at a pull request, and how it is marked."""

    reviewers: tuple[Reviewer, ...] = ()
    labels: tuple[str, ...] = ()
    assign_requester: bool = False
