"""Whole runs whose change Resolver verifies itself."""

from typing import Any

import pytest

from resolver.events.lifecycle import CheckExecuted, VerificationCompleted
from resolver.events.log import Event
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish, make_checkout

CODE = "def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return a + a\n"
TEST = "import unittest\nimport calc\n\n\nclass CalcTest(unittest.TestCase):\n    def test_twice(self):\n        self.assertEqual(calc.twice(2), 4)\n"  # noqa: E501
FILES = {"calc.py": CODE, "tests/__init__.py": "", "tests/test_calc.py": TEST}
FIX = "sed -i 's/a - b/a + b/' calc.py"
ADD_TEST = "printf '\\n    def test_add(self):\\n        self.assertEqual(calc.add(1, 2), 3)\\n' >> tests/test_calc.py"  # noqa: E501
BREAK = "sed -i 's/a + a/a * a * a/' calc.py"
MEND = "sed -i 's/a \\* a \\* a/a + a/' calc.py"


@pytest.fixture(autouse=True)
def verifying(command_line: CommandLine) -> None:
    command_line.environment |= {"RESOLVER_VERIFY": "true"}


def evidence_of(
    line: CommandLine, *commands: str, endpoint: ModelEndpoint, finishes: int = 1
) -> tuple[dict[str, Any], list[Event], str]:
    """Run with these commands of the agent; return the evidence, the events and the text."""
    checkout = make_checkout(line.folder / "calc", FILES)
    for command in commands:
        endpoint.add(bash(command) if command != "finish" else finish("Add instead of subtract"))
    if "finish" not in commands:
        endpoint.add(finish("Add instead of subtract"))
    done = line.call_resolve(checkout)
    assert done.exit_code == 0, done.stdout + done.stderr
    return done.outcome["evidence"], done.events, (done.output / "pull_request.md").read_text()
