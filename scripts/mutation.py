"""Mutation testing of the modules that matter most, against their own unit tests.

    python scripts/mutation.py [--mutants 40] [--seed 1] [NAME ...]

cosmic-ray (https://cosmic-ray.readthedocs.io) makes the mutants: a comparison is turned around, a
number is changed, a loop is not entered. Its own way to run them starts pytest once for each, which
costs seconds before the first test. Here the tests are collected once for a module; then each
mutant is a fork of the process in which the code of one function is exchanged, and runs only the
tests that execute this function, up to the first that fails.

Prints the share of killed mutants of each module and the lines of those that survive. Only code in
functions is mutated. The end is an error if a module's share is below 85%.
"""

import argparse
import contextlib
import difflib
import gc
import inspect
import itertools
import os
import pickle
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[1]
MIN_KILLED = 0.85

MODULES = {
    "policy": (
        "git/policy.py",
        "tests/git/test_policy.py",
        "tests/git/test_withheld_secrets.py",
    ),
    "authorization": ("github/events/permission.py", "tests/github/events"),
    "redaction": ("security/redaction.py", "tests/security"),
    "escaping": (
        "github/text/comment_markdown.py",
        "tests/github/test_comment_markdown.py",
        "tests/github/test_markdown_writer.py",
        "tests/github/test_text_growth.py",
    ),
    "apply-to-branch": ("git/merge.py", "tests/git/test_merge.py"),
    "limits": ("controller/limits.py", "tests/controller"),
    "quota": ("github/events/quota_decision.py", "tests/github/events"),
    "wire": (
        "sandbox/wire.py",
        "tests/sandbox/test_wire.py",
        "tests/sandbox/test_server.py",
        "tests/runtime/test_client.py",
        "tests/runtime/test_tunnels.py",
    ),
    "change-export": (
        "git/bundle.py",
        "tests/git/test_bundle.py",
        "tests/git/test_bundle_header.py",
    ),
    "event-log": ("events/log.py", "tests/events"),
    "update-branch": (
        "publishing/update_branch.py",
        "tests/publishing/test_update_branch.py",
        "tests/publishing/test_moved_pull_request.py",
        "tests/runs/test_update_stages.py",
    ),
    "commit-builder": (
        "publishing/commit_builder.py",
        "tests/publishing/test_commit_builder.py",
        "tests/publishing/test_commit_authors.py",
        "tests/publishing/test_earlier_branch.py",
        "tests/publishing/test_branches.py",
    ),
    "branches": (
        "publishing/branches.py",
        "tests/publishing/test_new_branch.py",
        "tests/publishing/test_branches.py",
        "tests/publishing/test_earlier_branch.py",
    ),
    "pull-request": (
        "publishing/pull_request.py",
        "tests/publishing/test_base_moved.py",
        "tests/publishing/test_earlier_branch.py",
        "tests/publishing/test_propose.py",
        "tests/github/test_check_run.py",
    ),
    "review": (
        "publishing/review.py",
        "tests/publishing/test_threads.py",
        "tests/runs/test_reviewing.py",
        "tests/runs/test_review_stages.py",
    ),
    "admission": ("runs/quotas/admission.py", "tests/quotas"),
    "resume": ("runs/resuming/resume.py", "tests/runs/test_resumed_log.py"),
    "watch": (
        "runs/conversation/watch.py",
        "tests/conversation/test_watch.py",
        "tests/conversation/test_standing_request.py",
        "tests/runs/test_withdrawal.py",
    ),
    "request-runner": (
        "entrypoints/webhook/request_runner.py",
        "tests/webhook/test_request_runner.py",
        "tests/webhook/test_runs.py",
    ),
    "pull-request-heads": (
        "github/comments/pull_request_heads.py",
        "tests/github/test_github_heads.py",
    ),
    "thread-replies": ("github/comments/thread_replies.py", "tests/github/test_github_rounds.py"),
    "find-or-create": (
        "github/comments/find_or_create.py",
        "tests/github/test_github_publishing.py",
        "tests/github/test_github_abandoned.py",
    ),
    "progress": (
        "github/comments/progress.py",
        "tests/github/test_progress_reporter.py",
        "tests/github/test_github_comments.py",
        "tests/github/test_verification_text.py",
        "tests/presentation",
    ),
}
"""Each module below `resolver/` and its tests."""

EXAMPLES = "quick"
"""Profile of hypothesis: many examples of one property say little more about a mutant."""

LEFT_OUT = ("Variable", "NoOp", "RemoveDecorator", "_Is", "_IsNot")
"""Operators whose mutants are mostly equivalent or no program at all."""

Codes = dict[str, CodeType]


@dataclass(frozen=True)
class Mutant:
    """source: the module's whole text. functions: the qualified names of those that differ."""

    operator: str
    source: str
    functions: frozenset[str]


def codes_of(source: str, path: Path) -> Codes:
    """The code of each outermost function, by qualified name."""
    found: Codes = {}

    def collect(code: CodeType) -> None:
        for const in code.co_consts:
            if not isinstance(const, CodeType):
                continue
            # What is in a function changes with it; what is in a class's body are methods.
            if const.co_flags & inspect.CO_OPTIMIZED:
                found[const.co_qualname] = const
            else:
                collect(const)

    collect(compile(source, str(path), "exec", dont_inherit=True))
    return found


def essence(code: CodeType | None) -> Any:
    """What a function does: its code without lines and columns. Annotations are no part of it."""
    if code is None:
        return None
    consts = [essence(c) if isinstance(c, CodeType) else (type(c), c) for c in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, code.co_exceptiontable, consts


class Positions(Visitor):  # type: ignore[misc]
    """Lists where an operator can change a module."""

    def __init__(self, operator: Any) -> None:
        self.operator = operator
        self.found: list[tuple[int, int]] = []

    def visit(self, node: Any) -> Any:
        self.found += [start for start, _ in self.operator.mutation_positions(node)]
        return node


def mutants_of(path: Path, seed: int) -> Iterator[Mutant]:
    """Mutants of a module's functions: a place at random, and there an operator at random."""
    source = path.read_text()
    original = codes_of(source, path)
    places: dict[tuple[int, int], list[tuple[str, int]]] = {}
    for name in sorted(operator_names()):
        if not any(part in name for part in LEFT_OUT):
            positions = Positions(get_operator(name)())
            positions.walk(get_ast(source))
            for number, place in enumerate(positions.found):
                places.setdefault(place, []).append((name, number))
    chance = random.Random(seed)
    order = sorted(places)
    chance.shuffle(order)
    for place in order:
        name, number = chance.choice(places[place])
        try:
            text = mutate_code(source, get_operator(name)(), number)
            codes = codes_of(text, path)
        except (SyntaxError, AttributeError):  # no program; an operator that knows no dotted names
            continue
        changed = frozenset(n for n in original if essence(codes.get(n)) != essence(original[n]))
        if changed:
            yield Mutant(name.removeprefix("core/"), text, changed)


def shown(path: Path, mutant: Mutant) -> str:
    """The lines that a mutant changes."""
    lines = difflib.unified_diff(
        path.read_text().splitlines(), mutant.source.splitlines(), n=0, lineterm=""
    )
    return "\n".join(f"    {line}" for line in lines if not line.startswith(("---", "+++")))


@dataclass
class Ran:
    """What the tests of a module do without a mutant."""

    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)
    executed: dict[str, set[str]] = field(default_factory=dict)
    """By test: the functions of the module that it executes."""
    durations: dict[str, float] = field(default_factory=dict)
    """By test: seconds."""


class Tester:
    """The pytest plugin that runs mutants in place of the collected tests."""

    def __init__(self, path: Path, mutants: int, seed: int) -> None:
        self.path, self.mutants, self.seed = path, mutants, seed
        self.killed = 0
        self.survivors: list[Mutant] = []
        self.failed: list[str] = []
        self._stops_at_failure = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.ran: Ran = in_child(lambda: self._run(session.items), 3600)
        assert isinstance(self.ran, Ran) and not self.ran.failed, self.ran
        self._stops_at_failure = True
        patience = 30 + 5 * self.ran.seconds
        for mutant in itertools.islice(mutants_of(self.path, self.seed), self.mutants):
            if self._is_killed(session.items, mutant, patience):
                self.killed += 1
            else:
                self.survivors.append(mutant)
                print(f"{mutant.operator} survives:\n{shown(self.path, mutant)}", flush=True)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)
            if self._stops_at_failure:
                os._exit(1)

    def _is_killed(self, items: list[pytest.Item], mutant: Mutant, patience: float) -> bool:
        chosen = [i for i in items if self.ran.executed.get(i.nodeid, set()) & mutant.functions]
        if not chosen:
            return False
        # Most mutants fail in many tests, so the quickest are tried first.
        chosen.sort(key=lambda item: self.ran.durations.get(item.nodeid, 0.0))

        def run() -> bool:
            exchange(mutant, self.path)
            self._run(chosen)
            return True

        return in_child(run, patience) is not True

    def _run(self, items: list[pytest.Item]) -> Ran:
        ran = Ran()
        begun = time.monotonic()
        now: set[str] = set()
        names = set(codes_of(self.path.read_text(), self.path))

        def note(frame: Any, *_: Any) -> None:  # of each call
            if frame.f_code.co_filename == str(self.path):
                name = frame.f_code.co_qualname.partition(".<locals>")[0]
                now.update({name} & names)

        for item, following in zip(items, [*items[1:], None], strict=True):
            now.clear()
            started = time.monotonic()
            if not self._stops_at_failure:
                sys.settrace(note)
                threading.settrace(note)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            sys.settrace(None)
            threading.settrace(None)
            ran.executed[item.nodeid] = set(now)
            ran.durations[item.nodeid] = time.monotonic() - started
        ran.seconds = time.monotonic() - begun
        ran.failed = self.failed
        return ran


def exchange(mutant: Mutant, path: Path) -> None:
    """Give the functions of the loaded module their mutated code."""
    gc.unfreeze()
    codes = codes_of(mutant.source, path)
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(path):
            name = function.__code__.co_qualname
            if name in mutant.functions and name in codes:
                function.__code__ = codes[name]


def in_child(work: Any, patience: float) -> Any:
    """What `work` returns in a fork of this process; None if it does not come to its end.

    patience: seconds. The child can't bound itself: pytest-timeout takes its alarm. Its result is
    in a file, because the processes that it leaves would keep a pipe open.
    """
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if not child:
            os.setpgid(0, 0)
            silence = os.open(os.devnull, os.O_RDWR)
            for descriptor in (1, 2):
                os.dup2(silence, descriptor)
            try:
                pickle.dump(work(), file)
                file.flush()
            finally:
                os._exit(0)
        deadline, ended, status = time.monotonic() + patience, 0, 0
        while not ended and time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            time.sleep(0.005)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # with what it has started
        if not ended:
            os.waitpid(child, 0)
            return None
        file.seek(0)
        data = file.read()
    return pickle.loads(data) if status == 0 and data else None


def measure(name: str, mutants: int, seed: int) -> float:
    module, *tests = MODULES[name]
    tester = Tester(ROOT / "resolver" / module, mutants, seed)
    options = ["-o", "addopts=", "-p", "no:terminal", "-p", "no:cacheprovider"]
    options += ["-m", "not deep and not nightly", "--hypothesis-profile", EXAMPLES]
    code = pytest.main([*options, *tests], plugins=[tester])
    assert code == 0, f"pytest ended with {code}"
    whole = tester.killed + len(tester.survivors)
    print(f"{name}: {tester.killed} of {whole} mutants of resolver/{module} killed", flush=True)
    return tester.killed / whole


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*MODULES, []], metavar="NAME")
    parser.add_argument("--mutants", type=int, default=40, help="mutants of a module, at most")
    parser.add_argument("--seed", type=int, default=1, help="which of them")
    options = parser.parse_args()
    shares = []
    for name in options.names or MODULES:
        # Each in a process of its own: what one module's tests import is not the next one's.
        child = os.fork()
        if not child:
            os._exit(round(100 * measure(name, options.mutants, options.seed)) + 100)
        shares.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) - 100)
    return 0 if min(shares) >= 100 * MIN_KILLED else 1


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
