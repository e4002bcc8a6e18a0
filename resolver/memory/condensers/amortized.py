"""A condenser that forgets half of the turns each time there are too many."""

from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.forgetting import forget
from resolver.memory.condensers.view import CondenserView


class AmortizedForgetting:
    """Lets the number of turns grow to `most`, then forgets the oldest ones after the first
    `keep_first` until half of `most` are left.

    Because half of them go at once, condensations stay rare, and the amortized cost per turn is
    constant, however long the run is.
    """

    def __init__(self, most: int = 120, keep_first: int = 2) -> None:
        self._most = max(2, most)
        self._first = min(keep_first, self._most // 2 - 1)

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        if len(view.turns) <= self._most:
            return None
        left = self._most // 2 - self._first
        return forget(view, view.turns[self._first : len(view.turns) - left])
