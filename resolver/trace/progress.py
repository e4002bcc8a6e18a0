"""Shows a run while it is in progress: a stream subscriber that prints to a rich console."""

from rich.console import Console
from rich.text import Text

from resolver.events.base import ActionBase
from resolver.events.lifecycle import roots_of
from resolver.events.log import Event
from resolver.trace.plain import for_terminal, one_line
from resolver.trace.steps import is_step, step_of
from resolver.trace.text import live_line


class TerminalProgress:
    """Prints each step when it begins and how it ended: styled on a terminal, else plain lines.

    console: where to print. Text from outside is never interpreted as rich markup, and is printed
        without anything that controls a terminal or GitHub's runner.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._steps = 0
        self._roots: tuple[str, ...] = ()

    def __call__(self, event: Event) -> None:
        """Print the progress line of `event`, if it has one."""
        self._roots += roots_of((event,))
        line = live_line(event, self._roots)
        if line is None:
            return
        if isinstance(event, ActionBase) and is_step(event):
            self._steps += 1
            self._thought(event)
            line = line.replace(">", f"{self._steps}.", 1)
        if self._console.is_terminal:
            self._print(line, self._style(event, line))
        else:
            self._print(line, "")

    def _thought(self, action: ActionBase) -> None:
        thought = one_line(step_of(action, self._steps, None).thought, 200)
        if thought and self._console.is_terminal:
            self._print(for_terminal(thought), "italic dim")

    def _style(self, event: Event, line: str) -> str:
        if is_step(event):
            return "bold"
        if line.lstrip().startswith(("failed", "- error", "- warning")):
            return "red"
        return "green" if line.lstrip().startswith("ok") else "dim"

    def _print(self, line: str, style: str) -> None:
        # Replace characters that the output can't encode, instead of raising an exception.
        encoding = self._console.encoding
        shown = line.encode(encoding, "replace").decode(encoding)
        self._console.print(Text(shown, style=style), soft_wrap=True)
