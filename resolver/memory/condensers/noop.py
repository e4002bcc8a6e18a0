"""Forgets nothing: a conversation that no longer fits ends the run."""

from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.view import CondenserView


class NoOp:
    """For short runs, and to see what a conversation costs whole."""

    def condense(self, view: CondenserView) -> Condensation | None:  # noqa: ARG002 - the protocol
        """Nothing, ever."""
        return None
