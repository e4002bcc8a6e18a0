"""Who we are to GitHub: where the token comes from that a request or git shows.

A token may end in the middle of a run, so it is asked for at each use and never copied.
"""

from dataclasses import dataclass, field
from typing import Protocol


class TokenSource(Protocol):
    """Gives the token to show now. For several threads at a time."""

    def token(self) -> str:
        """Good for some minutes at least. Raises ForgeError when none can be had."""
        ...

    def login(self) -> str:
        """The login that its holder writes as; "" when GitHub is to be asked with the token."""
        ...

    def hidden_in(self, text: str) -> str:
        """`text` without the tokens that it has given."""
        ...


@dataclass(frozen=True)
class OneToken:
    """A token that stays: a person's, or the one that GitHub gives to an Action's job."""

    value: str = field(repr=False)

    def token(self) -> str:
        return self.value

    def login(self) -> str:
        return ""

    def hidden_in(self, text: str) -> str:
        return redact_token(text, self.value)


def redact_token(text: str, *tokens: str) -> str:
    """`text` with a word in the place of each token."""
    for token in filter(None, tokens):
        text = text.replace(token, "[token]")
    return text
