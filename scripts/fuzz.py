"""Fuzz the parsers of outside data, each in a process of its own, for a number of seconds.

    python scripts/fuzz.py [--seconds 120] [--workers 1] [NAME ...]

The targets are in `tests/fuzz`. An input fails if the target raises, or if it takes more than
`--limit` seconds of processor time. The smallest failing input of a target is printed as Python
that goes into `tests/fuzz/found.py`. Exits with 1 if anything failed.
"""

import argparse
import resource
import signal
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fuzz.target import TARGETS, FuzzTarget, examples_of, inputs
from tests.fuzz.targets import close_resources

MAX_MEMORY_BYTES = 4 << 30
MAX_INPUT_BYTES = 65_536
ROUND = 400
"""Number of inputs between two looks at the clock."""


class TooSlow(Exception):
    """Raised if one input takes too much processor time."""


@dataclass(frozen=True)
class FuzzResult:
    """The result of fuzzing one target. failure: the traceback; "" if nothing failed."""

    count: int
    slowest_seconds: float
    slowest: bytes
    failing: bytes = b""
    failure: str = ""


def _too_slow(*_: object) -> None:
    raise TooSlow


class Fuzzer:
    """Gives inputs to one target and remembers the slowest and the last one that failed."""

    def __init__(self, target: FuzzTarget, limit: float) -> None:
        self._target = target
        self._limit = limit
        self.count = 0
        self.slowest = (0.0, b"")
        self.failing = b""

    def try_input(self, data: bytes) -> None:
        self.count += 1
        began = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, self._limit)
        try:
            self._target.run(data)
        except BaseException:
            self.failing = data
            raise
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self.slowest = max(self.slowest, (time.process_time() - began, data))

    def run_round(self, number: int, end: float) -> None:
        """Try a number of inputs until the time is over, and shrink one that fails."""

        @seed(number)
        @settings(
            max_examples=ROUND,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.target, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(inputs(self._target, MAX_INPUT_BYTES if number % 4 == 0 else 2_000))
        def run(data: bytes) -> None:
            if time.monotonic() < end or self.failing:
                self.try_input(data)

        run()

    def fuzz(self, seconds: float) -> FuzzResult:
        """Try inputs until the time is over or one fails."""
        # The first use imports what the target needs, which takes seconds for some of them.
        self._target.run(examples_of(self._target)[0])
        end = time.monotonic() + seconds
        number = int(time.time())
        failure = ""
        try:
            while time.monotonic() < end and not failure:
                number += 1
                self.run_round(number, end)
        except BaseException:
            failure = traceback.format_exc()
            if not self.failing:  # not the target's, but that of the fuzzer itself
                raise
        return FuzzResult(self.count, *self.slowest, self.failing if failure else b"", failure)


def _work(name: str, seconds: float, limit: float, results: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    signal.signal(signal.SIGVTALRM, _too_slow)
    results.send(Fuzzer(TARGETS[name], limit).fuzz(seconds))
    close_resources()


def fuzz_in_process(name: str, seconds: float, limit: float) -> FuzzResult:
    """Fuzz one target in a process of its own, which may run out of memory or crash."""
    ours, theirs = Pipe(duplex=False)
    context = get_context("fork")
    process = context.Process(target=_work, args=(name, seconds, limit, theirs))
    process.start()
    theirs.close()
    with closing(ours):
        try:
            result: FuzzResult = ours.recv()
        except EOFError:
            result = FuzzResult(0, 0.0, b"", failure="the process ended without a result")
    process.join()
    return result


def report(name: str, result: FuzzResult) -> None:
    """Print the result of one target."""
    # On a slow machine, the seconds can be over before the first input.
    state = "FAILED" if result.failure else "ok" if result.count else "untried"
    print(
        f"{name:28} {state:7} {result.count:9,} inputs, slowest {result.slowest_seconds:6.2f} s "
        f"for {len(result.slowest):,} bytes",
        flush=True,
    )
    if result.failure:
        print(f"{result.failure}\n    {name!r}: ({result.failing!r},),\n", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the parsers of outside data.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="targets; all by default")
    parser.add_argument("--seconds", type=float, default=120.0, help="for each target")
    parser.add_argument("--limit", type=float, default=10.0, help="of one input, in seconds")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    unknown = set(options.names) - set(TARGETS)
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    failed = False
    with ThreadPoolExecutor(options.workers) as pool:
        jobs = {
            name: pool.submit(fuzz_in_process, name, options.seconds, options.limit)
            for name in options.names or TARGETS
        }
        for name, job in jobs.items():
            result = job.result()
            report(name, result)
            failed = failed or bool(result.failure)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
