"""A condenser that forgets nothing: a conversation that no longer fits ends the run."""

from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.view import CondenserView


class NoOp:
    """Never condenses. For short runs, and to measure what a full conversation costs."""

    def condense(self, view: CondenserView) -> Condensation | None:  # noqa: ARG002 - the protocol
        """Return None."""
        return None
