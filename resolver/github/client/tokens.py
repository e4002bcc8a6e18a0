"""Sources of the token that a request to GitHub or a git command uses.

A token may expire in the middle of a run, so it is requested at each use and never stored.
"""

from dataclasses import dataclass, field
from typing import Protocol


class TokenSource(Protocol):
    """Returns the current token. Implementations are thread-safe."""

    def token(self) -> str:
        """Return a token that is valid for some minutes at least.

        Raises ForgeError if there is none.
        """
        ...

    def login(self) -> str:
        """Return the login that the token writes as.

        It is "" when GitHub has to be asked with the token.
        """
        ...

    def hidden_in(self, text: str) -> str:
        """Return `text` with every token that this source has returned replaced."""
        ...


@dataclass(frozen=True)
class OneToken:
    """A fixed token: a person's, or the GITHUB_TOKEN of a GitHub Actions job."""

    value: str = field(repr=False)

    def token(self) -> str:
        return self.value

    def login(self) -> str:
        return ""

    def hidden_in(self, text: str) -> str:
        return redact_token(text, self.value)


def redact_token(text: str, *tokens: str) -> str:
    """Return `text` with each of the tokens replaced by `[token]`."""
    for token in filter(None, tokens):
        text = text.replace(token, "[token]")
    return text
