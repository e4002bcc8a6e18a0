"""What a condenser is: one method, from what a model is shown now to what it is to forget."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.view import CondenserView

MAX_TOKENS = 100_000
"""Of a conversation, where nothing else bounds it."""

WINDOW_SHARE = 0.7
"""Of a model's context window; the rest is for its replies and for what was estimated too low."""

NEVER_TOO_LONG = 4_000
"""Tokens below which nobody asks how large the window is."""


class Condenser(Protocol):
    """Decides what the conversation forgets; the same log always gives the same answer."""

    def condense(self, view: CondenserView) -> Condensation | None:
        """What to forget now; None when nothing has to be, or can be, forgotten.

        Where `view.wanted` (the model has said that the conversation does not fit), None means
        that nothing more can go.
        """
        ...


@dataclass(frozen=True)
class SizeBound:
    """Tokens that a conversation may have. most: what is set, 0 when nothing is; window: the
    model's context window, asked for once and not before a conversation is long."""

    most: int = 0
    window: Callable[[], int | None] = lambda: None

    @cached_property
    def tokens(self) -> int:
        """The bound itself."""
        if self.most:
            return self.most
        window = self.window()
        return min(MAX_TOKENS, int(window * WINDOW_SHARE)) if window else MAX_TOKENS

    def is_passed(self, view: CondenserView) -> bool:
        """Whether what is shown has to become less."""
        if not view.wanted and not self.most and view.tokens <= NEVER_TOO_LONG:
            return False
        return view.wanted or view.tokens > self.tokens

    def target(self, view: CondenserView) -> int:
        """Characters that may be left once it is passed: half, so that it seldom is."""
        return min(view.size, view.characters(self.tokens)) // 2
