"""Live pages under load: many viewers of one run, while deliveries arrive.

    python bench/viewers.py [--viewers 500] [--rate 50] [--seconds 10] [--runs 4] [--postgresql]

Starts `resolver serve` with the simulated GitHub and a model that answers once a second, so that
the watched run has an event to show each second. Prints a JSON line for each of: the memory of a
run in progress, deliveries without viewers (all wait, because the slots are taken) and the memory
of each, the viewers, deliveries with viewers, and what a second visit of as many leaves in memory.
With PostgreSQL, the same deliveries then go to a bare FastAPI with one insert, in the company of
the same runs, without viewers and with as many viewers of updates of the same size.
Memory is the proportional set size of the server's process; `sandbox_mb` is that of its child
processes, for each run.
"""

import argparse
import asyncio
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.deliveries import bare_server, figures_of, load, processor_seconds
from resolver.entrypoints.webhook.page_links import page_key
from resolver.storage.run_store import EVENTS
from tests.parts.github import github_server
from tests.parts.model_endpoint import ModelEndpoint, slow, tool_call
from tests.parts.postgres import running_postgres
from tests.parts.waiting import until
from tests.webhook.serving import SECRET, Forge, InstalledServer, Plans, Server

STEP_SECONDS = 1.0
"""Time between two answers of the model."""

STEPS = 200
"""Number of answers. The stuck detector sees that they differ."""

SETTLE_SECONDS = 3.0

MAX_ARRIVAL_SECONDS = 60.0

PUBLIC_URL = "http://127.0.0.1"


def memory_kb(pid: int) -> int:
    """The proportional set size of a process; 0 if it has ended."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))


def descendants(pid: int) -> Iterator[int]:
    """All processes below one."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            pids = [int(word) for word in children.read_text().split()]
        except OSError:
            continue
        for child in pids:
            yield child
            yield from descendants(child)


def server_state(server: Server) -> dict[str, Any]:
    """Threads and open files of the server."""
    folder = Path(f"/proc/{server.process.pid}")
    return {
        "threads": len(list((folder / "task").iterdir())),
        "open_files": len(list((folder / "fd").iterdir())),
        "load": round(os.getloadavg()[0], 1),
    }


def print_row(what: str, **values: Any) -> None:
    print(json.dumps({"what": what, **values}), flush=True)


@dataclass
class PageViewer:
    """One connection to the events of a run, and what it has received."""

    updates: int = 0
    size: int = 0
    status: int = 0
    has_ended: bool = False

    async def watch(self, port: int, path: str) -> None:
        """Read until the stream ends or the task is cancelled."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            self.status = int((await reader.readline()).split()[1])
            while data := await reader.read(65_536):
                self.size += len(data)
                self.updates += data.count(b"event: update")
            self.has_ended = True
        finally:
            writer.close()


async def deliver_all(
    pid: int, port: int, first: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Send deliveries to a server's process and return the figures about their answers."""
    processor_before = processor_seconds(pid)
    answers = await load(port, options.rate, options.seconds, first, SECRET)
    figures = figures_of(answers, processor_seconds(pid) - processor_before)
    return {**figures, "accepted": sum(status == 202 for status, _ in answers)}


async def arrive(
    port: int, path: str, count: int
) -> tuple[list[PageViewer], list[asyncio.Task[None]]]:
    """Let viewers come, and wait until each has got an update."""
    viewers, tasks = [PageViewer() for _ in range(count)], []
    end = time.monotonic() + MAX_ARRIVAL_SECONDS
    for viewer in viewers:
        tasks.append(asyncio.create_task(viewer.watch(port, path)))
        await asyncio.sleep(0.002)
    while time.monotonic() < end and not all(
        viewer.updates or viewer.has_ended for viewer in viewers
    ):
        await asyncio.sleep(0.05)
    return viewers, tasks


async def leave(tasks: list[asyncio.Task[None]]) -> None:
    """Close the connections."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(SETTLE_SECONDS)


async def measure_viewers(server: Server, run: str, options: argparse.Namespace, first: int) -> int:
    """Let the viewers come, deliver, and let them go; then let as many come and go again.

    Returns the mean size of an update in bytes.
    """
    pid, port = server.process.pid, server.port
    path = f"/runs/{run}/events?key={page_key(SECRET, run)}&after=-1&start=0"
    before, began = memory_kb(pid), time.monotonic()
    viewers, tasks = await arrive(port, path, options.viewers)
    all_seconds = time.monotonic() - began
    await asyncio.sleep(SETTLE_SECONDS)
    print_row(
        "viewers",
        viewers=len(viewers),
        refused=sum(viewer.status != 200 for viewer in viewers),
        first_update_of_all_s=round(all_seconds, 2),
        memory_kb_each=round((memory_kb(pid) - before) / len(viewers), 1),
        **server_state(server),
    )
    updates, sizes = [viewer.updates for viewer in viewers], [viewer.size for viewer in viewers]
    figures = await deliver_all(pid, port, first, options)
    gained = [viewer.updates - earlier for viewer, earlier in zip(viewers, updates, strict=True)]
    mean_size = (sum(viewer.size for viewer in viewers) - sum(sizes)) // max(1, sum(gained))
    print_row(
        "deliveries with viewers",
        viewers=len(viewers),
        **figures,
        updates_least=min(gained),
        updates_most=max(gained),
        update_bytes=mean_size,
        cut=sum(viewer.has_ended for viewer in viewers),
        **server_state(server),
    )
    await leave(tasks)
    left = memory_kb(pid)
    viewers, tasks = await arrive(port, path, options.viewers)
    await leave(tasks)
    growth = round((memory_kb(pid) - left) / len(viewers), 1)
    print_row("viewers again", memory_kb_kept_each=growth, **server_state(server))
    return mean_size


async def measure_bare(database: str, size: int, options: argparse.Namespace) -> None:
    """Deliver to the bare server, without and with viewers of updates of that size."""
    with bare_server(database, SECRET) as (process, port):
        figures = await deliver_all(process.pid, port, 1, options)
        print_row("bare FastAPI without viewers", **figures)
        path = f"/events?size={size}"
        viewers, tasks = await arrive(port, path, options.viewers)
        await asyncio.sleep(SETTLE_SECONDS)
        count = options.rate * options.seconds
        figures = await deliver_all(process.pid, port, 1 + count, options)
        print_row("bare FastAPI with viewers", viewers=len(viewers), **figures)
        await leave(tasks)


@contextmanager
def started_server(options: argparse.Namespace) -> Iterator[tuple[Server, Forge, Plans, str]]:
    """A server whose watched run has an event each second, and the URL of its PostgreSQL or ""."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in ("github", "serve"):
            (folder / name).mkdir()
        forge = Forge(stack.enter_context(github_server(folder / "github")))
        plans = Plans(stack.enter_context(ModelEndpoint()))
        more = {"RESOLVER_PUBLIC_URL": PUBLIC_URL}
        database = stack.enter_context(running_postgres()).url if options.postgresql else ""
        if database:
            more["RESOLVER_DATABASE_URL"] = database
        server = InstalledServer(folder / "serve", forge, plans.endpoint, **more)
        server.start("--concurrency", str(options.runs))
        stack.callback(server.close)
        yield server, forge, plans, database


def start_runs(server: Server, forge: Forge, plans: Plans, name: str, numbers: range) -> None:
    """Start a run of a repository of its own for each number, and wait for its model requests."""
    for number in numbers:
        issue = forge.issue(forge.repository(f"octo/r{number}"), name)
        server.deliver(forge.mention(issue))
    until(lambda: len(plans.times(name)) >= len(numbers))


def watched_run(server: Server) -> str:
    """The run that makes steps."""
    logs = server.runs.glob(f"*/{EVENTS}")
    return next(log.parent.name for log in logs if "plan-live" in log.read_text())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--viewers", type=int, default=500)
    parser.add_argument("--rate", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--postgresql", action="store_true")
    options = parser.parse_args()
    gc.disable()  # it would delay what the deliveries are measured by
    with started_server(options) as (server, forge, plans, database):
        steps = [
            tool_call("think", {"thought": f"Thought {number} is about line {number * 7}."})
            for number in range(STEPS)
        ]
        plans.add("live", *(slow(STEP_SECONDS, step) for step in steps))
        plans.add("held", slow(3600, steps[0]))
        pid = server.process.pid
        time.sleep(SETTLE_SECONDS)
        idle = memory_kb(pid)
        start_runs(server, forge, plans, "live", range(1))
        time.sleep(SETTLE_SECONDS)
        first = memory_kb(pid)
        start_runs(server, forge, plans, "held", range(1, options.runs))
        time.sleep(SETTLE_SECONDS)
        all_runs = memory_kb(pid)
        sandboxes = sum(memory_kb(child) for child in descendants(pid))
        print_row(
            "runs in progress",
            runs=options.runs,
            idle_mb=round(idle / 1024),
            memory_mb_first=round((first - idle) / 1024, 1),
            memory_mb_each_more=round((all_runs - first) / 1024 / max(1, options.runs - 1), 1),
            sandbox_mb=round(sandboxes / 1024 / options.runs, 1),
            **server_state(server),
        )
        figures = asyncio.run(deliver_all(pid, server.port, 1, options))
        time.sleep(SETTLE_SECONDS)
        count = options.rate * options.seconds
        waiting = (memory_kb(pid) - all_runs) / count
        print_row(
            "deliveries without viewers",
            **figures,
            memory_kb_per_waiting_run=round(waiting, 1),
            **server_state(server),
        )
        run = watched_run(server)
        size = asyncio.run(measure_viewers(server, run, options, count + 1))
        if database:
            asyncio.run(measure_bare(database, size, options))


if __name__ == "__main__":
    main()
