"""How soon a person sees that a request has arrived, while many runs wait.

    python bench/reactions.py [WAITING] [REQUESTS]

Starts `resolver serve` with the simulated GitHub, fills its two slots with runs that never end, and
delivers WAITING (50) more mentions in six repositories. Then delivers REQUESTS (10) mentions one
after the other, and prints a JSON line with the time in seconds from each delivery to the eyes
reaction on its comment, and the memory of the server.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.parts.github import github_server
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.waiting import until
from tests.webhook.serving import Forge, InstalledServer, Plans, plan_of_a_fix


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def main() -> None:
    numbers = [int(argument) for argument in sys.argv[1:]]
    waiting, requests = (*numbers, *(50, 10)[len(numbers) :])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in ("github", "serve"):
            (folder / name).mkdir()
        forge = Forge(stack.enter_context(github_server(folder / "github")))
        plans = Plans(stack.enter_context(ModelEndpoint()))
        plans.add("stuck", *plan_of_a_fix(delay=3600))
        server = InstalledServer(folder / "serve", forge, plans.endpoint)
        server.start()
        stack.callback(server.close)
        repositories = [forge.repository(f"octo/r{number}") for number in range(6)]

        def ask(number: int) -> Issue:
            issue = forge.issue(repositories[number % len(repositories)], "stuck")
            assert server.deliver(forge.mention(issue)) == (202, "stored")
            return issue

        def has_reaction(issue: Issue) -> bool:
            return any(reaction.content == "eyes" for reaction in list(issue.comments[0].reactions))

        first = [ask(number) for number in range(2)]
        until(lambda: len(plans.times("stuck")) >= 2)
        memory_before = memory_mb(server.process.pid)
        began = time.monotonic()
        queued = [ask(number) for number in range(waiting)]
        until(lambda: all(has_reaction(issue) for issue in [*first, *queued]), 600)
        all_seconds = time.monotonic() - began
        memory_after = memory_mb(server.process.pid)
        times = []
        for number in range(requests):
            sent_at = time.monotonic()
            issue = ask(number)
            until(partial(has_reaction, issue), 600, pause=0.005)
            times.append(time.monotonic() - sent_at)
        row = {
            "waiting": waiting,
            "reaction_median_s": round(statistics.median(times), 2),
            "reaction_max_s": round(max(times), 2),
            "all_waiting_s": round(all_seconds, 1),
            "memory_mb": round(memory_after),
            "memory_kb_per_waiting_run": round(1024 * (memory_after - memory_before) / waiting),
            "load": os.getloadavg()[0],
        }
        print(json.dumps(row))


if __name__ == "__main__":
    main()
