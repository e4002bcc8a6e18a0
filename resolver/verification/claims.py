"""Evidence from what the agent itself ran: real commands with real exit codes, in the agent's own
sandbox, so labelled as the agent's and never as verified."""

from resolver.models.check_history import CheckHistory, ObservedCheck
from resolver.models.run import CheckedCommand, Evidence

MOST_COMMANDS = 5


def evidence_from_log(course: CheckHistory) -> Evidence:
    """The checks that a run's log shows since code was last edited, the newest run of each, at most
    five, the one that decides among them; without any, those from before."""
    chosen = sorted(course.fresh or course.checks, key=lambda each: each.event_id)
    kept, deciding = chosen[-MOST_COMMANDS:], course.newest
    if deciding is not None and deciding not in kept:
        kept = [deciding, *kept[1:]]
    return Evidence(independent=False, commands=tuple(_command(each) for each in kept))


def _command(check: ObservedCheck) -> CheckedCommand:
    return CheckedCommand(
        command=check.command,
        exit_code=check.exit_code,
        event_id=check.event_id,
        output_tail=check.output,
        verdict=check.verdict,
        stale=check.stale,
    )
