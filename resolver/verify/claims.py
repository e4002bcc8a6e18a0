"""Evidence from what the agent itself ran: real commands with real exit codes, in the agent's own
sandbox, so labelled as the agent's and never as verified."""

from collections.abc import Sequence

from resolver.model import CheckedCommand, Evidence
from resolver.shell.checks import read_checks

MOST_COMMANDS = 5


def claimed_evidence(commands: Sequence[CheckedCommand]) -> Evidence:
    """The commands with a check in them, the last run of each, in order, at most five. Where the
    exit code of a command says nothing of its check, that is noted."""
    last: dict[str, CheckedCommand] = {}
    for command in commands:
        read = read_checks(command.command)
        if read.checks:
            masked = command.exit_code == 0 and not read.vouched
            noted = command.model_copy(update={"masked": masked})
            last[command.command.strip()] = noted
    chosen = sorted(last.values(), key=lambda c: c.event_id)[-MOST_COMMANDS:]
    return Evidence(independent=False, commands=tuple(chosen))
