"""Derives the checks that a command line runs, and how they ended, from its text and its output.

These are heuristics; `resolver.security.shell.checkers` defines what counts as a check.
"""

import re

from resolver.security.shell.checks import read_checks

_FAILING = re.compile(
    r"^\s*(?:FAILED\b|ERROR\b|FAIL\b|FAIL:|--- FAIL|not ok\b|E   |✕|✗|×|●|[^\s:]+:\d+(?::\d+)?: "
    r"error|error(?:\[|:| TS)|[\w.]*(?:Error|Exception)\b:|thread '.*panicked|Tests? failed)",
)
MOST_FAILING = 6
LINE = 160
"""Maximum characters of one quoted line."""

LONGEST = 400
"""Maximum characters kept of a check's command."""


def checks_in(command: str) -> tuple[str, ...]:
    """Return the parts of a command line that test, build or lint, normalized so that variants are
    equal: `cd x && CI=1 pytest -q | tail` gives `pytest -q`."""
    return tuple(dict.fromkeys(check[:LONGEST] for check in read_checks(command).checks))


def command_outcome(output: str, room: int = 600) -> str:
    """Return the lines of the output that show how a check ended: failures and the last two lines.

    room: maximum characters returned.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    failing = [line for line in lines if _FAILING.match(line)]
    told = [line[:LINE] for line in failing[:MOST_FAILING]]
    if len(failing) > MOST_FAILING:
        told.append(f"(and {len(failing) - MOST_FAILING} more such lines)")
    told += [line[:LINE] for line in lines[-2:] if line[:LINE] not in told]
    return "\n".join(told)[:room]
