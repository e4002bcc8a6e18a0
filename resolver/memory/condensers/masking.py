"""Condensers that replace older results by their outcome and keep all actions and messages."""

from collections.abc import Callable, Iterable

from resolver.events.base import ObservationBase
from resolver.events.lifecycle import Condensation
from resolver.events.observations import BrowserOutput
from resolver.memory.condensers.view import CondenserView
from resolver.memory.turns import Turn


class ObservationMasking:
    """Masks the results of all turns except the last `keep_last`.

    It waits until at least `at_once` results can be masked: in between, the provider's prompt cache
    stays valid.
    """

    def __init__(self, keep_last: int = 20, at_once: int = 20) -> None:
        self._last = max(1, keep_last)
        self._least = at_once

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        return mask(maskable(view, view.turns[: -self._last]), self._least)


class BrowserOutputs:
    """Masks all browser pages except the last `keep_last`, at least `at_once` of them at a time."""

    def __init__(self, keep_last: int = 2, at_once: int = 4) -> None:
        self._last = keep_last
        self._least = at_once

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        pages = maskable(view, view.turns, lambda x: isinstance(x, BrowserOutput))
        return mask(pages[: max(0, len(pages) - self._last)], self._least)


def maskable(
    view: CondenserView,
    turns: Iterable[Turn],
    is_meant: Callable[[ObservationBase], bool] = lambda _: True,
) -> list[ObservationBase]:
    """Return the turns' results that are shown in full and are long enough to be masked, in order.

    is_meant: selects the results to consider.
    """
    results = (x for turn in turns for x in turn.results.values() if is_meant(x))
    return [x for x in results if view.may_mask(x)]


def mask(observations: list[ObservationBase], least: int = 1) -> Condensation | None:
    """Return the Condensation that masks the observations; None if there are fewer than `least`."""
    if len(observations) < max(1, least):
        return None
    ids = tuple(sorted(x.id for x in observations))
    return Condensation(forgotten=(), masked=ids)
