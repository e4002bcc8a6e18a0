"""A condenser that keeps a fixed number of first and last turns."""

from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.forgetting import forget
from resolver.memory.condensers.view import CondenserView


class RecentEvents:
    """Forgets all turns except the first `keep_first` and the last `keep_last`. It waits until
    another `keep_last` turns have been added, so that the prompt cache stays valid in between."""

    def __init__(self, keep_first: int = 1, keep_last: int = 30) -> None:
        self._first = keep_first
        self._last = max(1, keep_last)

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        if len(view.turns) < self._first + 2 * self._last:
            return None
        return forget(view, view.turns[self._first : -self._last])
