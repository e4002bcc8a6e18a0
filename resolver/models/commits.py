"""A commit between the host's git and a forge that makes commits itself.

Made in `resolver.git.objects`, read by `resolver.github.comments.signed_commits`.
"""

from pydantic import Field

from resolver.models.base import FrozenModel


class NewEntry(FrozenModel):
    """A path of a commit that differs from its first parent's."""

    path: str
    mode: str = Field(description="Git's six digits; of a path that is gone, what it was.")
    id: str | None = Field(default=None, description="None where the path is gone.")


class MadeCommit(FrozenModel):
    """A commit as it was made here, for a forge to make the same one."""

    id: str = Field(description="Here; the forge's own has another.")
    message: str
    tree: str
    parents: tuple[str, ...] = Field(description="Ids here, or of commits that the forge has.")
    base_tree: str = Field(description="The first parent's tree.")
    entries: tuple[NewEntry, ...] = Field(description="What differs from it; paths are UTF-8.")
    blobs: tuple[str, ...] = Field(description="Contents that no parent has, each once.")


class PublishedCommit(FrozenModel):
    """A commit as a branch of the forge holds it."""

    id: str
    signed: bool = Field(default=False, description="Whether the forge vouches for who made it.")
