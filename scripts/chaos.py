"""Kills a server's processes at random moments, and checks that nothing is lost or done twice.

    python -m scripts.chaos --minutes 3 --kills 20 --suspend-seconds 60

Mentions in several repositories of the simulated GitHub are delivered to real processes of
`resolver serve`, some of them twice. Meanwhile the server, a worker, the sandbox of a run or
PostgreSQL is killed without notice, and what nobody else starts is started again; a worker is
suspended for a minute, and finds its runs in other hands when it wakes up. At the end each
accepted mention must have exactly one branch, one pull request and one final comment, and no run
may have waited longer than a minute for a process that was dead. Prints a JSON line, and ends with
exit code 1 if that is not so. The seed makes the order of the kills the same again, not their exact
moments.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any

from resolver.runtime import enter
from resolver.sandbox.processes import descendant_pids
from tests.parts.github import github_server
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.postgres import Postgres, running_postgres
from tests.parts.runs import INSTALLED_RESOLVER, bash, finish
from tests.parts.waiting import becomes_true, until
from tests.webhook.serving import FIX, SUMMARY, Forge, Plans, Server

MAX_WAIT_SECONDS = 60.0
"""How long a run may wait for a process that was killed."""

SHARE_REPEATED = 0.2
"""Share of the deliveries that are sent again under the same id."""

STEPS = 3
"""Steps of each run before it finishes."""

DELAY = 1.0
"""Seconds that the model takes for each step, so that most kills interrupt a run."""


@dataclass
class Mention:
    """A person's request.

    accepted: True once a delivery of it was answered 202. starts: when a process began to work on
    it. ended_at: when its final comment was found; 0.0 until then.
    """

    issue: Issue
    plan: str
    payload: dict[str, Any]
    accepted: bool = False
    starts: list[float] = field(default_factory=list)
    ended_at: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.issue.repository.full_name}#{self.issue.number}"


@dataclass
class Kill:
    """Something that was killed, and the runs that were active then."""

    kind: str
    at: float
    active: list[Mention] = field(default_factory=list)


def find_problems(mentions: list[Mention]) -> list[str]:
    """Return what is lost or doubled: for people to read, empty if all is well."""
    problems = []
    for mention in (candidate for candidate in mentions if candidate.accepted):
        issue = mention.issue
        branches = [
            name
            for name in Forge.branches(issue.repository)
            if name.startswith(f"agent/issue-{issue.number}-")
        ]
        pulls = [
            pull
            for pull in Forge.pulls(issue.repository)
            if pull.pull is not None and pull.pull.head in branches
        ]
        found = {
            "branches": len(branches),
            "pull requests": len(pulls),
            "final comments": len(Forge.final_comments(issue)),
            "comments": len(Forge.own_comments(issue)),
        }
        wrong = [f"{count} {what}" for what, count in found.items() if count != 1]
        if wrong:
            problems.append(f"{mention.name} has {', '.join(wrong)}")
    return problems


def longest_wait(kills: list[Kill], plans: Plans, ended_at: float) -> tuple[float, str]:
    """Return the longest time in seconds from a kill to the next sign of a run that was active
    then: its next start, a request to its model, or its end; and the run. ended_at: when the
    observation ended."""
    longest, name = 0.0, ""
    for kill in kills:
        for mention in kill.active:
            signs = [*mention.starts, *plans.times(mention.plan), mention.ended_at or ended_at]
            wait = min((sign for sign in signs if sign > kill.at), default=ended_at) - kill.at
            if wait > longest:
                longest, name = wait, f"{mention.name} after {kill.kind}"
    return longest, name


def is_sandbox(pid: int) -> bool:
    """Return True for the outermost process of a local sandbox."""
    try:
        return enter.__file__.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


class Chaos:
    """One experiment: the processes, the mentions, and what is done to them."""

    def __init__(
        self,
        options: Mapping[Server, tuple[str, ...]],
        forge: Forge,
        plans: Plans,
        postgres: Postgres | None,
        seed: int,
    ) -> None:
        """options: the running processes, the server first, with the options of each."""
        self.options, self.processes = options, list(options)
        self.forge, self.plans, self.postgres = forge, plans, postgres
        self.random = random.Random(seed)
        self.kills: list[Kill] = []
        self.sandboxes_killed = 0
        self.mentions: list[Mention] = []
        self.targets = {"process": self.kill_process, "sandbox": self.kill_sandbox}
        if postgres is not None:
            self.targets["database"] = self.kill_database
        self._began = self._ended = time.monotonic()

    def prepare(self, count: int, repositories: int) -> None:
        """Create the repositories and the comments that ask."""
        names = [self.forge.repository(f"octo/chaos{number}") for number in range(repositories)]
        for number in range(count):
            plan = f"chaos{number}"
            steps = [bash(f"echo step {step}") for step in range(STEPS)]
            answers = [replace(answer, delay=DELAY) for answer in (*steps, FIX, finish(SUMMARY))]
            self.plans.add(plan, *answers)
            issue = self.forge.issue(names[number % repositories], plan)
            self.mentions.append(Mention(issue, plan, self.forge.mention(issue)))

    def send(self, mention: Mention) -> None:
        """Deliver until it is accepted, as GitHub does if it is asked to deliver again."""
        id = f"delivery-{mention.plan}"

        def is_accepted() -> bool:
            with suppress(OSError, HTTPException, ValueError, KeyError):
                mention.accepted = self.processes[0].deliver(mention.payload, delivery=id)[0] == 202
            return mention.accepted

        until(is_accepted, 120, pause=0.5)

    def run(self, seconds: float, kills: int, suspend_seconds: float = 0.0) -> None:
        """Deliver all mentions and kill something now and then; return when all is done or
        nothing more is to be expected. suspend_seconds: how long a process is suspended."""
        begin = self._began = time.monotonic()
        moments = sorted(self.random.uniform(0, seconds) for _ in range(kills))
        repeated = self.random.sample(self.mentions, int(len(self.mentions) * SHARE_REPEATED))
        with ThreadPoolExecutor(4) as senders:
            sent = []
            for number, mention in enumerate([*self.mentions, *repeated]):
                due = begin + seconds * 0.6 * number / (len(self.mentions) + len(repeated))
                sent.append(senders.submit(self._send_at, due, mention))
            watcher = threading.Thread(target=self._watch, args=(begin + seconds + 600,))
            watcher.start()
            if suspend_seconds:
                threading.Timer(seconds / 3, self.suspend_process, (suspend_seconds,)).start()
            for moment in moments:
                time.sleep(max(0.0, begin + moment - time.monotonic()))
                self.kill()
            for delivery in sent:
                delivery.result()
        watcher.join()
        self._ended = time.monotonic()

    def _send_at(self, due: float, mention: Mention) -> None:
        time.sleep(max(0.0, due - time.monotonic()))
        self.send(mention)

    def _watch(self, deadline: float) -> None:
        """Note when runs start and when they have their final comment, until all have it."""

        def all_ended() -> bool:
            logs = "".join(process.log for process in self.processes)
            for mention in self.mentions:
                count = logs.count(f" starts for {mention.name}, ")
                mention.starts += [time.monotonic()] * (count - len(mention.starts))
                if not mention.ended_at and Forge.final_comments(mention.issue):
                    mention.ended_at = time.monotonic()
            return all(mention.ended_at for mention in self.mentions)

        becomes_true(all_ended, deadline - time.monotonic(), pause=0.2)

    def active(self) -> list[Mention]:
        """The mentions whose runs have started and have no final comment yet."""
        return [mention for mention in self.mentions if mention.starts and not mention.ended_at]

    def kill(self) -> None:
        """Kill something by chance, and start it again."""
        kind = self.random.choice(sorted(self.targets))
        self.kills.append(Kill(kind, time.monotonic(), self.active()))
        self.targets[kind]()

    def problems(self) -> list[str]:
        """Return what is lost or doubled, and who waited too long: empty if all is well."""
        found = find_problems(self.mentions)
        wait, name = longest_wait(self.kills, self.plans, self._ended)
        if wait > MAX_WAIT_SECONDS:
            found.append(f"{name} waited for {wait:.0f} s")
        return found

    def result(self) -> dict[str, Any]:
        """Return what happened, as numbers."""
        wait, name = longest_wait(self.kills, self.plans, self._ended)
        return {
            "seconds": round(self._ended - self._began),
            "processes": len(self.processes),
            "accepted": sum(mention.accepted for mention in self.mentions),
            "ended": sum(bool(mention.ended_at) for mention in self.mentions),
            "kills": dict(Counter(kill.kind for kill in self.kills)),
            "sandboxes_killed": self.sandboxes_killed,
            "rebuilt": "".join(process.log for process in self.processes).count("it is rebuilt"),
            "interrupted_runs": sum(len(kill.active) for kill in self.kills),
            "longest_wait_s": round(wait, 1),
            "longest_wait_of": name,
        }

    def kill_process(self) -> None:
        """kill -9 of the server or of a worker."""
        process = self.random.choice(self.processes)
        process.end(signal.SIGKILL)
        process.start(*self.options[process])

    def suspend_process(self, seconds: float) -> None:
        """SIGSTOP of a process that has active runs, if there is one, for this time."""
        server = max(self.processes, key=lambda server: len(descendant_pids(server.process.pid)))
        process = server.process
        self.kills.append(Kill("suspension", time.monotonic(), self.active()))
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)

    def kill_sandbox(self) -> None:
        """kill -9 of a sandbox of one of the processes, if there is one."""
        started = [pid for server in self.processes for pid in descendant_pids(server.process.pid)]
        sandboxes = [pid for pid in started if is_sandbox(pid)]
        if not sandboxes:
            return
        sandbox = self.random.choice(sandboxes)
        self.sandboxes_killed += 1
        for pid in [sandbox, *descendant_pids(sandbox)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_database(self) -> None:
        """PostgreSQL is stopped as a crash does, and started again."""
        assert self.postgres is not None
        self.postgres.stop()
        time.sleep(self.random.uniform(0, 3))
        self.postgres.start()


class WebServer(Server):
    """`resolver serve`, not the fork that stands for it in tests: its children are its own."""

    program = INSTALLED_RESOLVER


class WorkerServer(Server):
    """`resolver worker` instead of `resolver serve`."""

    program = INSTALLED_RESOLVER

    def start(self, *options: str) -> None:
        """Start it and wait until it works."""
        with (self.folder / "log").open("ab") as log:
            before = log.tell()
            self._process = subprocess.Popen(
                [self.program, "worker", *options],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )

        def is_working() -> bool:
            assert self.process.poll() is None, self.log
            return "its runs are in" in self.log[before:]

        until(is_working, 60)


def parse_arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--mentions", type=int, default=30)
    parser.add_argument("--repositories", type=int, default=6)
    parser.add_argument("--workers", type=int, default=2, help="processes of `resolver worker`")
    parser.add_argument("--suspend-seconds", type=float, default=60.0, help="of one process")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="postgresql")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder in which logs and runs are left")
    return parser.parse_args()


def main() -> int:
    """Run the experiment that the command line asks for, print its result, return the exit code."""
    arguments = parse_arguments()
    with ExitStack() as stack:
        folder = arguments.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "github").mkdir()
        postgres = (
            stack.enter_context(running_postgres()) if arguments.database == "postgresql" else None
        )
        forge = Forge(stack.enter_context(github_server(folder / "github")))
        plans = Plans(stack.enter_context(ModelEndpoint()))
        environment = {}
        if postgres is not None:
            environment["RESOLVER_DATABASE_URL"] = postgres.url
        environment["RESOLVER_RUN_STORE"] = str(folder / "runs")
        processes: dict[Server, tuple[str, ...]] = {}
        for number in range(arguments.workers + 1):
            home = folder / ("serve" if number == 0 else f"worker-{number}")
            home.mkdir()
            kind: type[Server] = WorkerServer if number else WebServer
            process = kind(home, forge, plans.endpoint, **environment)
            stack.callback(process.close)
            is_web = number == 0 and arguments.workers > 0
            processes[process] = ("--concurrency", "0") if is_web else ("--concurrency", "3")
        for process, options in processes.items():
            process.start(*options)
        chaos = Chaos(processes, forge, plans, postgres, arguments.seed)
        chaos.prepare(arguments.mentions, arguments.repositories)
        chaos.run(arguments.minutes * 60, arguments.kills, arguments.suspend_seconds)
        problems = chaos.problems()
        print(json.dumps(chaos.result() | {"problems": problems}))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
