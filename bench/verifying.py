"""How much time the verification of a change adds to a run.

    PYTHONPATH=. python bench/verifying.py [--suite 60] [--runtime local|docker]

A whole run on a repository whose tests sleep, for --suite seconds altogether, of which the change
affects one: the time from the agent's end to the verdict, by the timestamps of the log, against the
slower of the executions of the whole check at base and at the change; and the seconds of all
executions together, which the load of the machine changes less.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from resolver.events.base import EventBase
from resolver.events.lifecycle import CheckExecuted, VerificationCompleted
from resolver.events.log import read_log
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import bash, finish, make_checkout

RESOLVER = Path(sys.executable).parent / "resolver"
TESTS = 12
TEST = """\
import time
import unittest

import module{number}


class Test{number}(unittest.TestCase):
    def test_value(self):
        time.sleep({seconds})
        self.assertGreater(module{number}.value(), -100)
"""
NEW_TEST = "\\n\\nclass NewTest(unittest.TestCase):\\n"
NEW_TEST += "    def test_new(self):\\n        self.assertEqual(module0.value(), 100)\\n"


def environment(**more: str) -> dict[str, str]:
    """The variables of a run: none of this process that configure it."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RESOLVER", "LLM"))}
    return {**kept, "LITELLM_LOCAL_MODEL_COST_MAP": "True", **more}


def load() -> str:
    return f"{os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors"


def measure_suite(folder: Path, runtime: str, seconds: float) -> None:
    """Print how long a verification takes beside the slower of its two whole executions."""
    files = {"tests/__init__.py": ""}
    for number in range(TESTS):
        files[f"module{number}.py"] = f"def value():\n    return {number}\n"
        path = f"tests/test_module{number}.py"
        test = TEST.format(number=number, seconds=seconds / TESTS)
        files[path] = test
    checkout = make_checkout(folder / "checkout", files)
    (folder / "issue.md").write_text("# Return 100\n")
    endpoint = ModelEndpoint()
    edit = "sed -i 's/return 0/return 100/' module0.py"
    endpoint.script(
        bash(f"{edit}; printf '{NEW_TEST}' >> tests/test_module0.py"), finish("Return 100")
    )
    variables = environment(
        LLM_MODEL="openai/scripted", LLM_API_KEY="sk-of-the-measurement", LLM_BASE_URL=endpoint.url,
        RESOLVER_RUNTIME=runtime, RESOLVER_VERIFY="true",
    )  # fmt: skip
    issue, output = str(folder / "issue.md"), folder / "output"
    command = [str(RESOLVER), "resolve", str(checkout), "--issue", issue, "--output", str(output)]
    subprocess.run(command, cwd=folder, env=variables, capture_output=True, check=True)
    endpoint.close()
    events: list[EventBase] = list(read_log(output / "events.jsonl"))
    checks = [event for event in events if isinstance(event, CheckExecuted)]
    completed = next(event for event in events if isinstance(event, VerificationCompleted))
    start = events[events.index(checks[0]) - 1].timestamp
    whole = (completed.timestamp - start).total_seconds()
    print(f"| verification of a suite of {seconds:.0f} s, {runtime} | seconds |")
    print("|---|--:|")
    for check in checks:
        print(f"| {check.at}: `{check.command}` | {check.execution.seconds:.1f} |")
    print(f"| all of them | {sum(check.execution.seconds for check in checks):.1f} |")
    slower = max(check.execution.seconds for check in checks)
    print(f"| from the agent's end to the verdict ({completed.evidence.verdict}) | {whole:.1f} |")
    print(f"| against the slower execution, goal: at most 1.2 | {whole / slower:.2f} |")
    print(f"\nload {load()}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", type=float, default=60.0)
    parser.add_argument("--runtime", choices=["local", "docker"], default="local")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measure_suite(Path(name), arguments.runtime, arguments.suite)


if __name__ == "__main__":
    main()
