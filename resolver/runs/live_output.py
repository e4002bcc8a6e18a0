"""Passes the output of a running command on to a display, without secrets.

It is shown only: it is not in the event log, and no model, comment or trace contains it.
"""

from typing import Protocol, runtime_checkable

from resolver.events.stream import Subscriber
from resolver.runtime.client import OnOutput
from resolver.security.redaction import Redactor


@runtime_checkable
class OutputDisplay(Protocol):
    """A display that shows the output of a command while it runs."""

    def show_output(self, text: str) -> None:
        """Show the last lines of the output, until the command ends. Does not wait."""
        ...


def live_output(progress: Subscriber | None, redactor: Redactor) -> OnOutput | None:
    """Return the receiver of a running command's output; None if `progress` does not show it."""
    if not isinstance(progress, OutputDisplay):
        return None
    show_output = progress.show_output
    # The whole text, before the display cuts anything: the rest of a secret may not be recognized.
    return lambda text: show_output(redactor.redact_text(text))
