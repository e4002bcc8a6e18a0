"""What a command line was for and what came of it, read off its text and its output.

Rules of thumb; what a check is stands in `resolver.security.shell.checkers`.
"""

import re

from resolver.security.shell.checks import read_checks

_FAILING = re.compile(
    r"^\s*(?:FAILED\b|ERROR\b|FAIL\b|FAIL:|--- FAIL|not ok\b|E   |✕|✗|×|●|[^\s:]+:\d+(?::\d+)?: "
    r"error|error(?:\[|:| TS)|[\w.]*(?:Error|Exception)\b:|thread '.*panicked|Tests? failed)",
)
MOST_FAILING = 6
LINE = 160
"""Characters of one quoted line."""

LONGEST = 400
"""Characters of a check that are kept."""


def checks_in(command: str) -> tuple[str, ...]:
    """The parts of a command line that test, build or lint, each in one form for all its variants:
    `cd x && CI=1 pytest -q | tail` is `pytest -q`."""
    return tuple(dict.fromkeys(check[:LONGEST] for check in read_checks(command).checks))


def command_outcome(output: str, room: int = 600) -> str:
    """The lines of an output that say how a check ended: what failed, and the last words."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    failing = [line for line in lines if _FAILING.match(line)]
    told = [line[:LINE] for line in failing[:MOST_FAILING]]
    if len(failing) > MOST_FAILING:
        told.append(f"(and {len(failing) - MOST_FAILING} more such lines)")
    told += [line[:LINE] for line in lines[-2:] if line[:LINE] not in told]
    return "\n".join(told)[:room]
