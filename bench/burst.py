"""A burst of deliveries while the server is killed and its database crashes.

    python bench/burst.py [DELIVERIES] [CONNECTIONS]

Sends DELIVERIES (10,000) with CONNECTIONS (64) at a time to `resolver serve` on PostgreSQL: a fifth
are sent twice, and a tenth more are forged. After a third the server is killed with SIGKILL and
started again, after two thirds PostgreSQL is stopped with `-m immediate` and started again. What is
not answered, or with 503, is sent again, as GitHub does on request. Then compares the queue with
what was accepted, and prints a JSON line: nothing may be lost, stored twice or forged.
"""

import asyncio
import collections
import json
import os
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg

from bench.deliveries import SECRET, payload, request_of, resolver_server
from tests.parts.postgres import Postgres, running_postgres

GIVE_UP_SECONDS = 600.0


@dataclass
class Burst:
    """What was sent so far. port: of the server that runs now. answers: number of answers by
    status, 0 for none."""

    port: int = 0
    sent: int = 0
    accepted: set[str] = field(default_factory=set)
    forged_answers: collections.Counter[int] = field(default_factory=collections.Counter)
    answers: collections.Counter[int] = field(default_factory=collections.Counter)

    async def send(self, number: int, id: str, is_forged: bool) -> None:
        """Deliver, again and again until it is accepted or refused for good."""
        body = payload(number)
        request = request_of(body, id, "wrong" if is_forged else SECRET)
        end = time.monotonic() + GIVE_UP_SECONDS
        while time.monotonic() < end:
            status = await answer_of(self.port, request)
            self.answers[status] += 1
            if is_forged and status not in {0, 503}:
                self.forged_answers[status] += 1
                break
            if status == 202:
                self.accepted.add(id)
                break
            await asyncio.sleep(0.2)
        self.sent += 1


async def answer_of(port: int, request: bytes) -> int:
    """Return the answer's status; 0 for none."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(request)
            response = await asyncio.wait_for(reader.read(), 20)
        finally:
            writer.close()
        return int(response.split(b" ", 2)[1])
    except (OSError, ValueError, IndexError, TimeoutError):
        return 0


async def send_all(burst: Burst, count: int, connections: int, faults: "Faults") -> None:
    """Send everything in random order, and cause the faults on the way."""
    numbers = list(range(1, count + 1))
    chance = random.Random(1)
    todo = [(number, f"d-{number}", False) for number in [*numbers, *numbers[: count // 5]]]
    todo += [(number, f"forged-{number}", True) for number in numbers[: count // 10]]
    chance.shuffle(todo)
    remaining = collections.deque(todo)

    async def work() -> None:
        while remaining:
            await burst.send(*remaining.popleft())

    async def watch() -> None:
        for share, fault in ((1 / 3, faults.kill_server), (2 / 3, faults.crash_database)):
            while burst.sent < share * len(todo):
                await asyncio.sleep(0.02)
            await asyncio.to_thread(fault)

    await asyncio.gather(watch(), *(work() for _ in range(connections)))


@dataclass
class Faults:
    """The processes that are killed."""

    burst: Burst
    folder: Path
    url: str
    postgres: Postgres
    stack: ExitStack

    def start_server(self) -> None:
        self.process, self.burst.port = self.stack.enter_context(
            resolver_server(self.folder, self.url)
        )

    def kill_server(self) -> None:
        self.process.kill()
        self.process.wait()
        began = time.monotonic()
        self.start_server()
        self.restart_seconds = time.monotonic() - began

    def crash_database(self) -> None:
        self.postgres.stop()
        self.postgres.start()


def stored_ids(url: str) -> list[str]:
    """Return the ids of the deliveries in the queue, without those of their later attempts."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT workflow_uuid FROM dbos.workflow_status")
        names = [str(row[0]).rpartition("/")[2] for row in rows]
    return [name for name in names if "~" not in name]


def main() -> int:
    numbers = [int(argument) for argument in sys.argv[1:]]
    count, connections = (*numbers, *(10_000, 64)[len(numbers) :])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = stack.enter_context(running_postgres())
        burst = Burst()
        faults = Faults(burst, folder, postgres.url, postgres, stack)
        faults.start_server()
        began = time.monotonic()
        asyncio.run(send_all(burst, count, connections, faults))
        seconds = time.monotonic() - began
        stored = stored_ids(postgres.url)
        result = {
            "deliveries": count,
            "seconds": round(seconds, 1),
            "accepted_per_second": round(len(burst.accepted) / seconds, 1),
            "answers": dict(burst.answers),
            "restart_s": round(faults.restart_seconds, 1),
            "lost": len(burst.accepted - set(stored)),
            "doubled": len(stored) - len(set(stored)),
            "forged": sum(id.startswith("forged") for id in stored),
            "forged_answers": dict(burst.forged_answers),
            "not_accepted": count - len(burst.accepted),
            "load": os.getloadavg()[0],
        }
        print(json.dumps(result), flush=True)
    return 0 if not (result["lost"] or result["doubled"] or result["forged"]) else 1


if __name__ == "__main__":
    sys.exit(main())
