"""The base of the models of GitHub's answers, and parts that several answers have in common."""

from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class ApiAnswer(BaseModel):
    """A part of an answer of GitHub's REST or GraphQL API, with the fields that Resolver uses.

    Other fields are ignored, since GitHub adds new ones at any time.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


def nodes_of(connection: Any) -> Any:
    """Return the items of a list in a GraphQL answer, without those that the token can't see.

    GitHub returns null for such an item, and for a list that the token can't see at all. Anything
    but a list is returned as it is, for the validator to refuse.
    """
    if connection is None:
        return ()
    nodes = connection.get("nodes") if isinstance(connection, dict) else connection
    return [node for node in nodes if node is not None] if isinstance(nodes, list) else nodes


Item = TypeVar("Item")

Nodes = Annotated[tuple[Item, ...], BeforeValidator(nodes_of)]
"""The items of a list in a GraphQL answer, see `nodes_of`."""


class RepositoryName(ApiAnswer):
    """A repository in a GraphQL answer."""

    name: str = Field(alias="nameWithOwner")

    def is_same(self, full_name: str) -> bool:
        """Return True if it is the repository OWNER/NAME."""
        return self.name.casefold() == full_name.casefold()


class AuthorAccount(ApiAnswer):
    """The account that wrote something, in a GraphQL answer."""

    kind: str = Field(alias="__typename", default="User")
    login: str

    @property
    def name(self) -> str:
        """The login as in the REST API, with the suffix `[bot]` that the GraphQL API leaves out."""
        is_bot = self.kind == "Bot" and not self.login.endswith("[bot]")
        return f"{self.login}[bot]" if is_bot else self.login


class AuthoredAnswer(ApiAnswer):
    """An issue, a comment or a review in a GraphQL answer, not yet cleaned."""

    account: AuthorAccount | None = Field(alias="author", default=None)
    association: str = Field(alias="authorAssociation", default="NONE")
    body: str = ""
    created_at: datetime = Field(alias="createdAt")
    edited_at: datetime | None = Field(alias="lastEditedAt", default=None)

    @property
    def author(self) -> str:
        """The login as in the REST API, "ghost" for a deleted account."""
        return self.account.name if self.account else "ghost"


class TitleChange(ApiAnswer):
    """A change of a title. before: the title before it."""

    before: str = Field(alias="previousTitle")
