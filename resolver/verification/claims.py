"""Select the agent's own checks that are shown with a change.

They are commands that the agent itself executed in its own sandbox, with their real exit codes.
They are labelled as the agent's and never as verified.
"""

from resolver.models.check_history import CheckHistory, ObservedCheck
from resolver.models.run import CheckedCommand

MAX_COMMANDS = 5
"""Maximum number of checks that are shown."""


def checks_of_agent(check_history: CheckHistory) -> tuple[CheckedCommand, ...]:
    """Return the checks that ran since code was last edited: the newest run of each, five at most.

    The check that decides (`CheckHistory.newest`) is always among them. If no check ran since the
    last edit, earlier ones are returned.
    """
    chosen = sorted(check_history.fresh or check_history.checks, key=lambda check: check.event_id)
    shown, deciding = chosen[-MAX_COMMANDS:], check_history.newest
    if deciding is not None and deciding not in shown:
        shown = [deciding, *shown[1:]]
    return tuple(_command(check) for check in shown)


def _command(check: ObservedCheck) -> CheckedCommand:
    """Return the check as a command."""
    return CheckedCommand(
        command=check.command,
        exit_code=check.exit_code,
        event_id=check.event_id,
        output_tail=check.output,
        verdict=check.verdict,
        stale=check.stale,
    )
