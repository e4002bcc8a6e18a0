"""Tests of a process that is killed at any point while it stores a delivery."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

POINTS = 10
KILLED_AT_POINTS = """
import json, os, signal, sys
from datetime import datetime, UTC
from resolver.storage.database import parse_database_url
from resolver.entrypoints.webhook.request_queue import QueuedRequest, RequestKind, RequestQueue
from resolver.models.run import Actor, Trigger, TriggerKind

url = parse_database_url(f"sqlite:///{sys.argv[1]}/resolver.db")
points = int(sys.argv[2])
now = datetime(2026, 3, 1, 12, tzinfo=UTC)


def request(number):
    trigger = Trigger(key=f"k{number}", kind=TriggerKind.ISSUE_COMMENT, number=number, at=now,
                      repository=f"octo/{number}", actor=Actor(login="mona"))
    return QueuedRequest(f"delivery-{number}", RequestKind.RUN, trigger)


def add(number, calls=0):
    # Return how many functions were called. With `calls`, the process ends itself at that call.
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += 1
        if count == calls:
            os.kill(os.getpid(), signal.SIGKILL)

    queue = RequestQueue(url)
    sys.setprofile(profile)
    queue.add(request(number))
    sys.setprofile(None)
    queue.close()
    return count


def stored():
    queue = RequestQueue(url)
    found = {stored.trigger.number for stored in queue.unfinished()}
    queue.close()
    return found


def killed_at(number, calls):
    child = os.fork()
    if child == 0:
        add(number, calls)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


add(0)  # what is cached by the first request
total = add(1)
killed = [killed_at(2 + n, max(1, total * n // (points - 1))) for n in range(points)]
before = sorted(stored())
queue = RequestQueue(url)
again = [queue.add(request(number)) for number in range(2 + points)]
queue.close()
print(json.dumps({"killed": killed, "before": before, "again": again}))
"""


@pytest.mark.attack
def test_a_kill_at_any_point_of_storing_leaves_the_delivery_stored_or_not(tmp_path: Path) -> None:
    """The server is killed at points all over the storing of a delivery: it is stored completely or
    not at all, and storing it again makes it one."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AT_POINTS, str(tmp_path), str(POINTS)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert sum(result["killed"]) >= POINTS - 1
    stored = result["before"]
    # Killed at the first call it is not stored, killed at the last call it is.
    assert {0, 1} <= set(stored) and 2 not in stored and len(stored) > 2
    assert stored == [0, 1, *range(2 + POINTS - (len(stored) - 2), 2 + POINTS)]
    assert result["again"] == [number not in stored for number in range(2 + POINTS)]
