"""Select the commands that show what an agent tried before it decided to change nothing."""

import re
from collections.abc import Sequence

from resolver.models.run import CheckedCommand
from resolver.security.shell.writes import relative_command

MAX_COMMANDS = 5
"""Maximum number of commands that are shown."""

_LOOKING = re.compile(
    r"(?:cd\s+\S+\s*(?:&&|;)\s*)*"
    r"(?:ls|cat|head|tail|less|grep|rg|find|tree|wc|file|stat|pwd|echo|which|sed\s+-n|awk|cd"
    r"|git\s+(?:log|show|status|diff|blame|grep|branch|ls-files|rev-parse))\b(?!.*(?:&&|;|\n))",
    re.DOTALL,
)
"""Matches a command line that only reads, and so tries nothing."""


def attempted_checks(
    commands: Sequence[CheckedCommand], roots: Sequence[str] = ()
) -> tuple[CheckedCommand, ...]:
    """Return the commands that did more than read: the last run of each, in order, five at most.

    The commands are shown relative to the repository's root. `roots` are the paths of the
    repository in the run's sandboxes.
    """
    shown = (c.model_copy(update={"command": relative_command(c.command, roots)}) for c in commands)
    last = {c.command.strip(): c for c in shown if not _LOOKING.match(c.command.strip())}
    chosen = sorted(last.values(), key=lambda c: c.event_id)[-MAX_COMMANDS:]
    return tuple(chosen)
