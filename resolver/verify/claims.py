"""Evidence from what the agent itself ran: real commands with real exit codes, in the agent's own
sandbox, so labelled as the agent's and never as verified."""

import re
from collections.abc import Sequence

from resolver.model import CheckedCommand, Evidence

MOST_COMMANDS = 5

_CHECK = re.compile(
    r"""\b(
        pytest | unittest | tox | nox | nosetests | ruff | mypy | flake8 | pylint
      | (npm|yarn|pnpm|bun)\s+(run\s+)?(test|lint|check|build)\S*
      | (npx\s+)?(jest|vitest|mocha|tsc|eslint)
      | go\s+(test|vet|build) | cargo\s+(test|check|build|clippy|nextest)
      | make\s+(test|check|lint|build)\S* | mvn | gradlew? | ctest | rspec | rake | phpunit
      | dotnet\s+(test|build) | mix\s+test | swift\s+test
      | bundle\s+exec | prove | deno\s+(test|check) | bats
    )\b""",
    re.VERBOSE,
)


def claimed_evidence(commands: Sequence[CheckedCommand]) -> Evidence:
    """The checks among `commands`, the last run of each, in order, at most five."""
    last = {c.command.strip(): c for c in commands if _CHECK.search(c.command)}
    chosen = sorted(last.values(), key=lambda c: c.event_id)[-MOST_COMMANDS:]
    return Evidence(independent=False, commands=tuple(chosen))
