"""Start and end of the runs that a server executes, and the memory of its process.

    python bench/server_runs.py [--runs 6] [--runtime local|docker]

Starts `resolver serve` on SQLite, then `resolver serve --concurrency 0` with a `resolver worker` on
PostgreSQL. The process that executes runs (the child of `serve`, or the worker) has one slot. When
it has imported what runs need, mentions are delivered, each on an issue of a repository of its own:
the first, when its run has ended the next, and so on; then two at once, of which the second waits
for the slot. The model asks for one command and finishes, and the change is published; verification
is off.

Prints a JSON line for each process. Times in seconds, medians of the runs after the first one: from
the delivery to the first model request and to the start of the run, from the start to the first
model request; from the final comment to the end of the run, and to the start of the run that
waited. Processor time is that of the process from the delivery to the first model request. Memory
is resident, without the processes of sandboxes: before the first run, after it, at its peak, and
what each further run has added in the end.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.deliveries import processor_seconds
from bench.whole_run import Model, Recorder
from tests.parts.github import GitHubServer
from tests.parts.github_server.app import GitHubApp
from tests.parts.github_server.state import World
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.postgres import running_postgres
from tests.parts.runs import INSTALLED_RESOLVER
from tests.parts.waiting import until
from tests.parts.wsgi import serve
from tests.webhook.serving import Forge, InstalledServer, Server, WorkerProcess

IDLE_SECONDS = 1.5
"""A process that has used no processor for so long has imported what runs need."""


@dataclass(frozen=True)
class Bench:
    """The parts of a measurement. pid, log: of the process that executes runs."""

    server: Server
    forge: Forge
    model: Model
    recorder: Recorder
    pid: int
    log: Callable[[], str]

    def deliver(self, number: int) -> float:
        """Ask for a run in a new repository; the time of the delivery."""
        issue = self.forge.issue(self.forge.repository(f"octo/r{number}"), "change")
        mention = self.forge.mention(issue)
        at = time.time()
        if self.server.deliver(mention)[0] != 202:
            raise SystemExit("the delivery was not accepted")
        return at

    def wait_for_requests(self, count: int) -> None:
        """Wait until the model has got that many requests."""
        until(lambda: len(self.model.arrivals) >= count, pause=0.005)

    def logged(self, number: int) -> tuple[float, float] | None:
        """When the run of a repository started and ended, None before that."""
        times = [
            datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").timestamp()
            for line in self.log().splitlines()
            if f"for octo/r{number}#" in line
        ]
        return (times[0], times[-1]) if len(times) > 1 else None

    def commented(self, number: int) -> float:
        """When the last comment in a repository was written."""
        path = f"/repos/octo/r{number}/issues/"
        return max(
            request.at
            for request in self.recorder.requests
            if request.method in {"POST", "PATCH"} and path in request.path
        )


def memory_mb(pid: int, name: str = "VmRSS") -> float:
    """Resident memory of a process; its largest with `VmHWM`."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def child_of(pid: int) -> int | None:
    """Return the child of a process, None before it has one: that of a server executes its runs."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            if int(status.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                return int(status.parent.name)
    return None


def wait_until_idle(pid: int) -> None:
    """Wait until the process has imported what runs need."""

    def is_idle() -> bool:
        before = processor_seconds(pid)
        time.sleep(IDLE_SECONDS)
        return processor_seconds(pid) - before < 0.1

    until(lambda: memory_mb(pid) > 150 and is_idle())


@contextmanager
def started(runtime: str, with_worker: bool) -> Iterator[Bench]:
    """Start the processes with one slot for runs."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in ("github", "serve"):
            (folder / name).mkdir()
        app = GitHubApp(World(folder / "github"))
        recorder = Recorder(app)
        address = stack.enter_context(serve(recorder))
        forge = Forge(GitHubServer(address.port, app))
        endpoint = stack.enter_context(ModelEndpoint())
        model = Model(2)
        endpoint.answer_with(model)
        more = {
            "RESOLVER_RUNTIME": runtime,
            "RESOLVER_IMAGE": "resolver-test/python:latest",
        }
        if with_worker:
            more["RESOLVER_DATABASE_URL"] = stack.enter_context(running_postgres()).url
        server = InstalledServer(folder / "serve", forge, endpoint, **more)
        del server.environment["RESOLVER_PACE"]  # as people have it
        server.start("--concurrency", "0" if with_worker else "1")
        stack.callback(server.close)
        server_pid = server.process.pid
        pid, log = server_pid, lambda: server.log
        if with_worker:
            worker = WorkerProcess(
                folder / "worker", server, INSTALLED_RESOLVER, "--concurrency", "1"
            )
            stack.callback(worker.close)
            pid, log = worker.process.pid, lambda: worker.log
        else:
            pid = until(lambda: child_of(server_pid))
        yield Bench(server, forge, model, recorder, pid, log)


def measure(name: str, bench: Bench, runs: int) -> dict[str, str | float]:
    """Return the figures of a process."""
    wait_until_idle(bench.pid)
    idle, memory = memory_mb(bench.pid), list[float]()
    rows: dict[str, list[float]] = {}
    for number in range(runs):
        asked = len(bench.model.arrivals)
        processor = processor_seconds(bench.pid)
        delivered = bench.deliver(number)
        bench.wait_for_requests(asked + 1)
        processor = processor_seconds(bench.pid) - processor
        started, ended = until(partial(bench.logged, number))
        memory.append(memory_mb(bench.pid))
        if number == 0:
            first = bench.model.arrivals[asked] - delivered
            continue
        for label, value in {
            "first model request, s": bench.model.arrivals[asked] - delivered,
            "start of the run, s": started - delivered,
            "first model request after the start, s": bench.model.arrivals[asked] - started,
            "first model request, processor s": processor,
            "end after the final comment, s": ended - bench.commented(number),
        }.items():
            rows.setdefault(label, []).append(value)
    bench.deliver(runs)
    bench.deliver(runs + 1)
    waited, _ = until(lambda: bench.logged(runs + 1))
    figures = {
        "first run: first model request, s": first,
        **{label: statistics.median(values) for label, values in rows.items()},
        "start of a waiting run after the final comment, s": waited - bench.commented(runs),
        "memory before the first run, MB": idle,
        "memory after the first run, MB": memory[0],
        "largest memory, MB": memory_mb(bench.pid, "VmHWM"),
        "memory of each further run, MB": (memory[-1] - memory[0]) / (runs - 1),
    }
    rounded = {label: round(value, 3) for label, value in figures.items()}
    return {"server": name, **rounded, "load": f"{os.getloadavg()[0]:.1f}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--runtime", choices=["local", "docker"], default="local")
    options = parser.parse_args()
    for name, with_worker in {"serve, SQLite": False, "worker, PostgreSQL": True}.items():
        with started(options.runtime, with_worker) as bench:
            print(json.dumps(measure(name, bench, options.runs)), flush=True)


if __name__ == "__main__":
    main()
