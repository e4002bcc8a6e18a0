"""Whole runs whose change Resolver verifies itself.

Whole runs, because the checks are executed in sandboxes of their own, at both commits, and what
they show has to reach the log, the agent, the pull request and the trace.
"""

from typing import Any

import pytest

from resolver.events.lifecycle import CheckExecuted, VerificationCompleted
from resolver.events.observations import CmdOutput
from tests.parts.model_endpoint import Answer, ModelEndpoint, reply
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
PYTHON_TEST = """\
import sys
import unittest


class PythonTest(unittest.TestCase):
    def test_project(self):
        self.assertEqual(sys.base_prefix, "/usr")
"""
STEP = "{run: npm run e2e test, env: {KEY: '${{ secrets.KEY }}'}}"
FILES = {
    "calc.py": CODE,
    "tests/__init__.py": "",
    "tests/test_calc.py": TEST,
    "package.json": "{}",
    ".github/workflows/ci.yml": f"on: push\njobs: {{e2e: {{steps: [{STEP}]}}}}\n",
}
FIX = "sed -i 's/a - b/a + b/' calc.py"
ADD_TEST = f"cat >> tests/test_calc.py <<'END'{MORE}END"
BREAK = "sed -i 's/a + a/a * a/' calc.py"
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
    assert list(evidence) == ["verdict", "reason", "reproduction", "checks", "tampering"]
    assert (evidence["verdict"], evidence["reproduction"]) == ("verified", [NEW])
    [check] = evidence["checks"]
    assert list(check) == ["name", "command", "base", "head", "fixed", "broken", "flaky"]
    counts = {name: check["base"][name] for name in ("exit_code", "passed", "failed", "skipped")}
    assert counts == {"exit_code": 0, "passed": 1, "failed": 0, "skipped": 0}
    assert (check["head"]["passed"], check["fixed"]) == (2, [NEW])
    assert "**Verified:** 1 test fails without the change and passes with it" in text_of(done)
    assert "Not executed: `npm run e2e test`. " in text_of(done)
    assert "runs the script e2e, which package.json does not have" in text_of(done)
    changed = [e.changed.paths for e in done.events if isinstance(e, CmdOutput) and e.changed]
    assert changed == [("calc.py",), ("tests/test_calc.py",)]
    # The executions are in the log, and the trace shows them.
    executed = [e for e in done.events if isinstance(e, CheckExecuted)]
    assert {e.at for e in executed} == {"base", "base_with_tests", "head"}
    page = (done.output / "trace.html").read_text()
    assert "python -m unittest discover with the change: exit code 0, 2 passed" in page
    assert f"python -m unittest {NEW} with the change, again: exit code 0, 1 passed" in page
    assert "<dt>Verification</dt><dd>Verified</dd>" in page
    assert f"Fails without the change and passes with it: {NEW}" in page


def test_a_change_that_makes_every_test_pass_is_not_verified(
    command_line: CommandLine, model_endpoint: ModelEndpoint
) -> None:
    lines = "import unittest\\nunittest.TestCase.run = lambda self, result=None: result\\n"
    cheat = f"printf '{lines}' > sitecustomize.py"
    done = run(command_line, model_endpoint, BREAK, ADD_TEST, cheat, finish("Add"))
    assert done.outcome["evidence"]["verdict"] == "not_verified"


def test_an_opinion_is_asked_for_once_and_shown_as_one(
    command_line: CommandLine, model_endpoint: ModelEndpoint
) -> None:
    """A whole run: the story of a verified change, on which a model has an opinion."""
    answer = '{"addresses_issue": "no", "reason": "It subtracts.", "unrelated": []}'
    done = run(
        command_line, model_endpoint, FIX, ADD_TEST, finish("Add"), reply(answer),
        RESOLVER_CRITIQUE="true",
    )  # fmt: skip
    require_verified(done)  # a bad opinion changes nothing about the verdict
    critique = done.outcome["critique"]
    assert (critique["addresses_issue"], critique["reason"]) == ("no", "It subtracts.")
    assert done.outcome["services"]["critic"]["calls"] == 1 and critique["cost"] > 0
    assert done.outcome["cost"] == pytest.approx(sum(cost["cost"] for cost in costs(done)))
    assert "A model's opinion: the change does not do what the issue asks" in text_of(done)
    assert "thinks that the change does not do" in (done.output / "trace.html").read_text()
    prompt = str(model_endpoint.requests[-1].body["messages"])
    assert "+    return a + b" in prompt and NEW in prompt


def costs(done: Ended) -> list[dict[str, Any]]:
    return list(done.outcome["services"].values())


@pytest.mark.engine
@pytest.mark.usefixtures("own_images")
@pytest.mark.xdist_group("images")
def test_a_changed_dependency_is_verified_in_an_environment_prepared_from_the_change(
    command_line: CommandLine, model_endpoint: ModelEndpoint, python_image: str
) -> None:
    install = "mkdir -p site; cp wheels/$(cat requirements.txt).py site/dep.py\n"
    files = {
        **FILES,
        "calc.py": CODE.replace("a - b", "a + b * dep.SIGN") + "\n\nimport dep\n",
        "requirements.txt": "minus",
        "wheels/minus.py": "SIGN = -1\n",
        "wheels/plus.py": "SIGN = 1\n",
        ".agents/setup.sh": f"set -e\n{install}export PYTHONPATH=$PWD/site\n",
        ".gitignore": "site/\n",
        "tests/test_python.py": PYTHON_TEST,
    }
    options = ("--runtime", "docker", "--image", python_image)
    checkout = make_checkout(command_line.folder / "calc", files)
    model_endpoint.script(
        bash(f"printf none > requirements.txt; {ADD_TEST}"), finish("Add"),
        bash("printf plus > requirements.txt"), finish("Add"),
    )  # fmt: skip
    done = command_line.call_resolve(checkout, *options, RESOLVER_VERIFY="true")
    assert done.exit_code == 0, done.stdout + done.stderr
    evidence = done.outcome["evidence"]
    assert (evidence["verdict"], evidence["reproduction"]) == ("verified", [NEW]), evidence
    # The image has no `python`, so that its `python3` executes the tests.
    assert [check["base"]["failed"] for check in evidence["checks"]] == [0], evidence
    # The set-up failed with the first form of the change, which the agent was told.
    rounds = [e for e in done.events if isinstance(e, VerificationCompleted)]
    sent = [(e.evidence.reason, e.sent_to_agent) for e in rounds]
    assert sent == [("environment", True), ("", False)]
    asked = str(model_endpoint.requests[2].body["messages"][-1]["content"])
    assert "the set-up of the project was executed on it again, and failed" in asked
    assert "wheels/none.py" in asked
    # A set-up that keeps failing with the change leaves nothing to verify it in.
    model_endpoint.script(
        bash(f"printf none > requirements.txt; {ADD_TEST}"), finish("Break"), finish("Break")
    )
    broken = command_line.call_resolve(
        checkout, *options, RESOLVER_VERIFY="true", RESOLVER_VERIFICATION_ROUNDS="1"
    )
    assert broken.outcome["evidence"]["reason"] == "environment"
    assert "the change alters `requirements.txt`, and the set-up fails with the change" in text_of(
        broken
    )
