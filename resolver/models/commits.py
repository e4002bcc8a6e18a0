"""Models of a commit that GitHub creates from one made on the host.

GitHub signs the commits that it creates itself through the API. `resolver.git.objects` makes these
values, `resolver.github.comments.signed_commits` sends them.
"""

from pydantic import Field

from resolver.models.base import FrozenModel


class NewEntry(FrozenModel):
    """A path in a commit that differs from the commit's first parent."""

    path: str
    mode: str = Field(
        description="Git's mode, six digits; for a deleted path, the mode that it had."
    )
    id: str | None = Field(
        default=None, description="Id of the git object at the path; None for a deleted path."
    )


class MadeCommit(FrozenModel):
    """A commit made on the host, from which GitHub creates an equal one."""

    id: str = Field(description="Id of the commit on the host; GitHub's has another.")
    message: str
    tree: str
    parents: tuple[str, ...] = Field(
        description="Ids of commits on the host, or of commits that GitHub already has."
    )
    base_tree: str = Field(description="Tree of the first parent.")
    entries: tuple[NewEntry, ...] = Field(
        description="What differs from the first parent; paths are UTF-8."
    )
    blobs: tuple[str, ...] = Field(
        description="Ids of the blobs that no parent contains, without duplicates."
    )


class PublishedCommit(FrozenModel):
    """A commit on a branch on GitHub."""

    id: str
    signed: bool = Field(
        default=False, description="True when GitHub marks its signature as verified."
    )
