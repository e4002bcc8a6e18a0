"""How much time the verification of a change adds to a run.

    PYTHONPATH=. python bench/verifying.py [--rounds 5] [--suite 60] [--files 12]
        [--runtime local|docker]

Two measurements, each from whole runs:

- the demo's repository, with verification and with --no-verify in turns: the difference of the
  medians, in seconds and in seconds of processor time of all processes of the run;
- a repository whose tests sleep, for --suite seconds altogether in --files files, of which the
  change affects one: the time from the agent's end to the verdict, by the timestamps of the log,
  against the slower of the executions of the whole check at base and at the change; and the seconds
  of all executions together, which the load of the machine changes less.

The load of the machine is printed beside them. With a load above the number of processors the
seconds are worth little; the ratio of the second measurement is worth more, for sleeping tests need
no processor.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
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


def timed(arguments: list[str], folder: Path, variables: dict[str, str]) -> tuple[float, float]:
    """Run `resolver`; return its seconds and the processor time of all its processes."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [RESOLVER, *arguments], cwd=folder, env=variables, capture_output=True, check=False
    )
    ended, after = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stdout.decode() + done.stderr.decode())
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ended - started, processor


def load() -> str:
    return f"{os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors"


def measure_demo(folder: Path, runtime: str, rounds: int) -> None:
    """Print what verification adds to the demo."""
    found: dict[str, list[tuple[float, float]]] = {"true": [], "false": []}
    for number in range(rounds):
        for verify, times in found.items():
            output = str(folder / f"demo-{number}-{verify}")
            variables = environment(RESOLVER_VERIFY=verify, RESOLVER_RUNTIME=runtime)
            times.append(timed(["demo", "--folder", output], folder, variables))
    print(f"| run of the demo, {runtime} | seconds | processor seconds |")
    print("|---|--:|--:|")
    medians = {
        verify: [statistics.median(check_times) for check_times in zip(*times, strict=True)]
        for verify, times in found.items()
    }
    print("| with verification | {:.2f} | {:.2f} |".format(*medians["true"]))
    print("| without | {:.2f} | {:.2f} |".format(*medians["false"]))
    added = [a - b for a, b in zip(medians["true"], medians["false"], strict=True)]
    print("| added by it, goal: at most 3 s quiet | {:.2f} | {:.2f} |".format(*added))
    print(f"\nload {load()}, {rounds} rounds\n")


def measure_suite(folder: Path, runtime: str, seconds: float, files_of_tests: int) -> None:
    """Print how long a verification takes beside the slower of its two whole executions."""
    files = {"tests/__init__.py": ""}
    for number in range(TESTS):
        files[f"module{number}.py"] = f"def value():\n    return {number}\n"
        path = f"tests/test_module{number % files_of_tests}.py"
        test = TEST.format(number=number, seconds=seconds / TESTS)
        files[path] = files.get(path, "") + test
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
    timed(["resolve", str(checkout), "--issue", issue, "--output", str(output)], folder, variables)
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
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--suite", type=float, default=60.0)
    parser.add_argument("--files", type=int, default=TESTS, help="number of files with tests")
    parser.add_argument("--runtime", choices=["local", "docker"], default="local")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if arguments.rounds:
            measure_demo(Path(name), arguments.runtime, arguments.rounds)
        if arguments.suite:
            measure_suite(Path(name), arguments.runtime, arguments.suite, max(1, arguments.files))


if __name__ == "__main__":
    main()
