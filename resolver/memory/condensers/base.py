"""The `Condenser` protocol, and the size bound that decides when a conversation is too long."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.view import CondenserView

MAX_TOKENS = 100_000
"""Maximum tokens of a conversation if no maximum is configured."""

WINDOW_SHARE = 0.7
"""Share of a model's context window that a conversation may take. The rest is for replies and for
errors of the token estimate."""

NEVER_TOO_LONG = 4_000
"""Up to this number of tokens, the size of the context window is not queried."""


class Condenser(Protocol):
    """Decides what the conversation forgets. The same log always gives the same decision."""

    def condense(self, view: CondenserView) -> Condensation | None:
        """Return what to forget now; None if nothing has to be, or can be, forgotten.

        If `view.wanted` is true (the model reported that the conversation does not fit), None means
        that nothing more can be left out.
        """
        ...


@dataclass(frozen=True)
class SizeBound:
    """Represents the maximum number of tokens of a conversation.

    most: the configured maximum; 0 if none is configured.
    window: returns the model's context window in tokens, or None if it is unknown. Called at most
        once, and only when a conversation is long.
    """

    most: int = 0
    window: Callable[[], int | None] = lambda: None

    @cached_property
    def tokens(self) -> int:
        """The maximum itself: the configured one, or a share of the context window."""
        if self.most:
            return self.most
        window = self.window()
        return min(MAX_TOKENS, int(window * WINDOW_SHARE)) if window else MAX_TOKENS

    def is_passed(self, view: CondenserView) -> bool:
        """Return True if the conversation has to be condensed."""
        if not view.wanted and not self.most and view.tokens <= NEVER_TOO_LONG:
            return False
        return view.wanted or view.tokens > self.tokens

    def target(self, view: CondenserView) -> int:
        """Return the number of characters to condense to: half of the bound, so that condensations
        are rare."""
        return min(view.size, view.characters(self.tokens)) // 2
