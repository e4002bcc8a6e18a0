"""A webhook under load: `resolver serve`, and a bare FastAPI with one insert.

    python bench/deliveries.py [RATE] [SECONDS] [WAITING]

Sends RATE signed deliveries a second (200) for SECONDS (10), each on a connection of its own, to
each in turn, on SQLite and on PostgreSQL. Prints a JSON line for each: answers by status, and
their times from the moment at which the delivery was due, and the server's processor time for each.
Resolver's deliveries ask for runs of 20 repositories; their model and their GitHub answer nothing,
so that all wait. The server imports what its runs need before it answers; with `--concurrency 0` it
does not. The last lines are its start with WAITING (10,000) more runs that wait.
"""

import asyncio
import collections
import hashlib
import hmac
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg

from resolver.entrypoints.webhook.request_queue import (
    QueuedRequest,
    RequestKind,
    RequestQueue,
    RequestState,
)
from resolver.storage.database import parse_database_url
from tests.parts.postgres import running_postgres

RESOLVER = str(Path(sys.executable).parent / "resolver")
PEER = str(Path(__file__).parent / "peers" / "bare_webhook.py")
SECRET = "bench"
TICKS = os.sysconf("SC_CLK_TCK")


def payload(number: int) -> bytes:
    """A comment that asks for work, of about the size that GitHub sends."""
    name = f"octo/calc{number % 20}"
    user = {"login": "mona", "id": 1, "type": "User", "filler": "x" * 700}
    return json.dumps(
        {
            "action": "created",
            "issue": {
                "id": number,
                "number": number,
                "title": "2 + 2 gives 0",
                "body": "It should be 4. " * 100,
                "user": user,
                "labels": [],
                "state": "open",
                "created_at": "2026-01-01T00:00:00Z",
                "updated_at": "2026-01-01T00:00:00Z",
            },
            "comment": {
                "id": number,
                "body": "@agent please fix this",
                "user": user,
                "created_at": "2026-01-01T00:00:00Z",
                "updated_at": "2026-01-01T00:00:00Z",
                "author_association": "OWNER",
            },
            "repository": {"id": 1, "full_name": name, "default_branch": "main", "f": "y" * 6000},
            "sender": user,
        }
    ).encode()


def request_of(body: bytes, id: str, secret: str = SECRET) -> bytes:
    """The whole request that delivers the body."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    head = (
        f"POST /webhook HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        f"Content-Type: application/json\r\nX-GitHub-Event: issue_comment\r\n"
        f"X-GitHub-Delivery: {id}\r\nX-Hub-Signature-256: sha256={digest}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body


async def deliver(port: int, body: bytes, due: float) -> tuple[int, float]:
    """The answer's status (0 for none), and seconds since the delivery was due."""
    request = request_of(body, str(uuid.uuid4()))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        response = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        status = int(response.split(b" ", 2)[1])
    except (OSError, ValueError, IndexError, TimeoutError):
        status = 0
    return status, time.monotonic() - due


async def load(port: int, rate: int, seconds: int) -> list[tuple[int, float]]:
    """All answers."""
    bodies = [payload(1 + number) for number in range(rate * seconds)]
    begin = time.monotonic()
    sent = []
    for number, body in enumerate(bodies):
        due = begin + number / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        sent.append(asyncio.create_task(deliver(port, body, due)))
    return list(await asyncio.gather(*sent))


def processor_seconds(pid: int) -> float:
    """Of a process, by the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def figures_of(answers: list[tuple[int, float]], cpu_seconds: float) -> dict[str, Any]:
    """Statuses and times of the answers, and the processor time of the server for each."""
    times = sorted(seconds * 1000 for _, seconds in answers)
    return {
        "answers": dict(collections.Counter(status for status, _ in answers)),
        "p50_ms": round(statistics.median(times), 1),
        "p99_ms": round(times[int(len(times) * 0.99)], 1),
        "max_ms": round(times[-1], 1),
        "cpu_ms_each": round(cpu_seconds * 1000 / len(answers), 2),
    }


def measure_load(
    name: str, process: "subprocess.Popen[bytes]", port: int, rate: int, seconds: int
) -> None:
    asyncio.run(load(port, rate, 1))  # warm
    cpu_before = processor_seconds(process.pid)
    answers = asyncio.run(load(port, rate, seconds))
    cpu_seconds = processor_seconds(process.pid) - cpu_before
    row: dict[str, Any] = {
        "server": name,
        **figures_of(answers, cpu_seconds),
        "load": f"{os.getloadavg()[0]:.1f}",  # a text: no figure of the server
    }
    print(json.dumps(row), flush=True)


@contextmanager
def bare_server(database: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    process = subprocess.Popen([sys.executable, PEER, database, SECRET, str(port)])
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        yield process, port
    finally:
        process.kill()
        process.wait()


@contextmanager
def resolver_server(
    folder: Path, url: str, *options: str
) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """A server whose GitHub takes connections and never answers."""
    log = folder / f"log-{uuid.uuid4().hex}"
    with (
        socket.create_server(("127.0.0.1", 0), backlog=4096) as silent_listener,
        log.open("wb") as stderr,
    ):
        github = f"http://127.0.0.1:{silent_listener.getsockname()[1]}"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LLM_MODEL": "openai/none",
            "LLM_API_KEY": "none-none-none",
            "LLM_BASE_URL": github,
            "GITHUB_TOKEN": "none-none-none-none",
            "RESOLVER_BOT_LOGIN": "resolver-bot",
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": github,
            "GITHUB_SERVER_URL": github,
            "GITHUB_GRAPHQL_URL": github,
            "RESOLVER_RUNTIME": "local",
            "RESOLVER_DATABASE_URL": url,
            "RESOLVER_RUN_STORE": str(folder / "runs"),
        }
        process = subprocess.Popen(
            [RESOLVER, "serve", "--port", "0", *options], env=environment, cwd=folder, stderr=stderr
        )
        try:
            while not (address := re.search(r"127\.0\.0\.1:(\d+)/webhook", log.read_text())):
                if process.poll() is not None:
                    raise SystemExit(log.read_text())
                time.sleep(0.02)
            yield process, int(address[1])
        finally:
            process.kill()
            process.wait()


def measure_start(folder: Path, url: str, waiting: int, name: str) -> None:
    """The start of a server with as many more waiting runs, until it listens."""
    with closing(RequestQueue(parse_database_url(url))) as queue:
        [found] = queue.recent([RequestState.WAITING], limit=1)
        for number in range(waiting):
            changes = {"repository": f"o/r{number % 100}", "number": number}
            trigger = found.trigger.model_copy(update=changes)
            queue.add(QueuedRequest(f"filled-{number}", RequestKind.RUN, trigger))
    began = time.monotonic()
    with resolver_server(folder, url):
        seconds = round(time.monotonic() - began, 2)
    row = {"server": name, "waiting": waiting, "start_s": seconds}
    print(json.dumps(row), flush=True)


def main() -> None:
    numbers = [int(number) for number in sys.argv[1:]]
    rate, seconds, waiting = (*numbers, *(200, 10, 10_000)[len(numbers) :])
    with tempfile.TemporaryDirectory() as name, running_postgres() as server:
        folder = Path(name)
        database_urls = {}
        for database in ("bare", "resolver", "apart"):
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {database}")
            database_urls[database] = server.url.replace("/postgres?", f"/{database}?")
        with bare_server(database_urls["bare"]) as (process, port):
            measure_load("FastAPI + psycopg", process, port, rate, seconds)
        with resolver_server(folder, database_urls["resolver"]) as (process, port):
            measure_load("resolver, PostgreSQL", process, port, rate, seconds)
        apart = resolver_server(folder, database_urls["apart"], "--concurrency", "0")
        with apart as (process, port):
            measure_load("resolver, PostgreSQL, runs in workers", process, port, rate, seconds)
        with bare_server(str(folder / "bare.db")) as (process, port):
            measure_load("FastAPI + sqlite3", process, port, rate, seconds)
        url = f"sqlite:///{folder}/resolver.db"
        with resolver_server(folder, url) as (process, port):
            measure_load("resolver, SQLite", process, port, rate, seconds)
        measure_start(folder, database_urls["resolver"], waiting, "resolver, PostgreSQL")
        measure_start(folder, url, waiting, "resolver, SQLite")


if __name__ == "__main__":
    main()
