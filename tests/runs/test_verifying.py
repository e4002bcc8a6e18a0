"""Whole runs whose change Resolver verifies itself.

Whole runs, because the checks are executed in sandboxes of their own, at both commits, and what
they show has to reach the log, the agent, the pull request and the trace.
"""

from typing import Any

import pytest

from resolver.events.lifecycle import CheckExecuted, VerificationCompleted
from resolver.events.observations import CmdOutput
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish, make_checkout

CODE = "def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return a + a\n"
TEST = """\
import unittest

import calc


class CalcTest(unittest.TestCase):
    def test_twice(self):
        self.assertEqual(calc.twice(3), 6)
"""
MORE = """
    def test_add(self):
        self.assertEqual(calc.add(1, 2), 3)
"""
FILES = {
    "calc.py": CODE,
    "tests/__init__.py": "",
    "tests/test_calc.py": TEST,
}
FIX = "sed -i 's/a - b/a + b/' calc.py"
ADD_TEST = f"cat >> tests/test_calc.py <<'END'{MORE}END"
BREAK = "sed -i 's/a + a/a * a/' calc.py"
REPAIR = r"sed -i 's/a \* a/a + a/' calc.py"
NEW = "tests.test_calc.CalcTest.test_add"
OLD = "tests.test_calc.CalcTest.test_twice"


def run(
    line: CommandLine, endpoint: ModelEndpoint, *answers: str | Answer, **environment: str
) -> Ended:
    """Run with a checkout of FILES; a command stands for the model's request to execute it."""
    checkout = make_checkout(line.folder / "calc", FILES)
    endpoint.script(*(bash(answer) if isinstance(answer, str) else answer for answer in answers))
    done = line.call_resolve(checkout, RESOLVER_VERIFY="true", **environment)
    assert done.exit_code == 0, done.stdout + done.stderr
    return done


def text_of(done: Ended) -> str:
    return (done.output / "pull_request.md").read_text()


def require_verified(done: Ended) -> None:
    """Require the evidence of the verified change wherever it is shown."""
    evidence: dict[str, Any] = done.outcome["evidence"]
    assert list(evidence) == ["verdict", "reason", "reproduction", "checks", "review", "lacks"]
    assert (evidence["verdict"], evidence["reproduction"]) == ("verified", [NEW])
    [check] = evidence["checks"]
    lists = ["broken", "missing", "former", "failing", "known", "flaky"]
    assert list(check) == ["name", "command", "base", "head", *lists]
    counts = {name: check["base"][name] for name in ("exit_code", "passed", "failed", "skipped")}
    assert counts == {"exit_code": 0, "passed": 1, "failed": 0, "skipped": 0}
    assert check["head"]["passed"] == 2
    assert "**Verified:** 1 test fails without the change and passes with it" in text_of(done)
    changed = [e.changed.paths for e in done.events if isinstance(e, CmdOutput) and e.changed]
    assert changed == [("calc.py",), ("calc.py",), ("tests/test_calc.py",)]
    # The executions are in the log, and the trace shows them.
    executed = [e for e in done.events if isinstance(e, CheckExecuted)]
    trees = {"base", "base_with_tests", "head", "head_with_base_tests"}
    assert {e.at for e in executed} == trees
    page = (done.output / "trace.html").read_text()
    assert "python -m unittest discover with the change: exit code 0, 2 passed" in page
    assert f"python -m unittest {NEW} without the change, with its tests: exit code 1" in page
    assert "<dt>Verification</dt><dd>Verified</dd>" in page
    assert f"Fails without the change and passes with it: {NEW}" in page


def test_a_change_that_breaks_a_test_is_corrected_and_verified(
    command_line: CommandLine, model_endpoint: ModelEndpoint
) -> None:
    """A whole run: the story of a verified change, which first breaks a test and goes back to the
    agent for that."""
    done = run(
        command_line, model_endpoint, BREAK, finish("Add"),
        f"{REPAIR}; {FIX}", ADD_TEST, finish("Add"),
    )  # fmt: skip
    require_verified(done)
    rounds = [e for e in done.events if isinstance(e, VerificationCompleted)]
    sent = [(e.evidence.reason, e.sent_to_agent) for e in rounds]
    assert sent == [("regression", True), (None, False)]
    assert OLD in str(model_endpoint.requests[2].body["messages"][-1]["content"])
    assert done.outcome["cost"] == pytest.approx(sum(cost["cost"] for cost in costs(done)))


def costs(done: Ended) -> list[dict[str, Any]]:
    return list(done.outcome["services"].values())
