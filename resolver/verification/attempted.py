"""What an agent that changed nothing has tried: the commands behind "it does not happen here"."""

import re
from collections.abc import Sequence

from resolver.models.run import CheckedCommand, Evidence
from resolver.security.shell.places import relative_command

MOST_COMMANDS = 5

_LOOKING = re.compile(
    r"(?:cd\s+\S+\s*(?:&&|;)\s*)*"
    r"(?:ls|cat|head|tail|less|grep|rg|find|tree|wc|file|stat|pwd|echo|which|sed\s+-n|awk|cd"
    r"|git\s+(?:log|show|status|diff|blame|grep|branch|ls-files|rev-parse))\b(?!.*(?:&&|;|\n))",
    re.DOTALL,
)
"""A command line that only looks: it tries nothing."""


def attempted_checks(commands: Sequence[CheckedCommand], roots: Sequence[str] = ()) -> Evidence:
    """The commands that did more than look, the last run of each, in order, at most five; as they
    read from the repository's root. roots: its paths in the sandboxes."""
    shown = (c.model_copy(update={"command": relative_command(c.command, roots)}) for c in commands)
    last = {c.command.strip(): c for c in shown if not _LOOKING.match(c.command.strip())}
    chosen = sorted(last.values(), key=lambda c: c.event_id)[-MOST_COMMANDS:]
    return Evidence(independent=False, commands=tuple(chosen))
