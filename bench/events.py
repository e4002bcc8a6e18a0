"""The event log: durable append, opening, memory; beside openhands-sdk where it is given.

    python bench/events.py [--peer-python PATH] [--sizes 1000,10000]

PATH is the Python of an environment that has `openhands-sdk` (3.12 or later). Each number comes
from a fresh process, imports excluded; both sides get alternating actions and observations of 1 kB
on the same disk. Opening is: read, parse and check every event, then what the next step needs of
them (ours: the folded state; theirs: the view). Prints a Markdown table, medians of `--rounds`.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

OBSERVATION = "x" * 1000
PEER = Path(__file__).with_name("events_peer.py")


def make(path: Path, count: int) -> dict[str, Any]:
    """Append `count` events through the stream; the time of each."""
    from resolver.events.actions import CmdRun
    from resolver.events.base import ToolCall
    from resolver.events.observations import CmdOutput
    from resolver.events.stores import JsonlStore
    from resolver.events.stream import EventStream

    store = JsonlStore(path / "events.jsonl")
    stream = EventStream(store)
    durations = []
    for number in range(count):
        event: CmdRun | CmdOutput
        if number % 2 == 0:
            call = ToolCall(id=f"call_{number}", name="execute_bash", arguments='{"command":"ls"}')
            event = CmdRun(command="ls", thought=f"step {number}", tool_call=call)
        else:
            event = CmdOutput(cause=number - 1, exit_code=0, content=OBSERVATION)
        started = time.perf_counter()
        stream.add(event)
        durations.append((time.perf_counter() - started) * 1000)
    store.close()
    durations.sort()
    return {"median": statistics.median(durations), "p99": durations[int(len(durations) * 0.99)]}


def reopen(path: Path) -> dict[str, Any]:
    """Open the log as a resumed run does, and fold it."""
    from resolver.events.state import State
    from resolver.events.stores import JsonlStore

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    store = JsonlStore(path / "events.jsonl")
    state = State.fold(store)
    milliseconds = (time.perf_counter() - started) * 1000
    store.close()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"ms": milliseconds, "events": len(state.events), "memory_mb": (after - before) / 1024}


def child(python: str, script: Path, *words: object) -> dict[str, Any]:
    """One measurement in a fresh process."""
    command = [python, str(script), *map(str, words)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{completed.stderr}")
    result: dict[str, Any] = json.loads(completed.stdout.splitlines()[-1])
    return result


def measure(python: str, script: Path, count: int, rounds: int) -> dict[str, float]:
    """Append once, open `rounds` times."""
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        made = child(python, script, "make", folder, count)
        opened = [child(python, script, "open", folder) for _ in range(rounds)]
    return {
        "append, median ms": made["median"],
        "append, p99 ms": made["p99"],
        "open, ms": statistics.median(o["ms"] for o in opened),
        "memory, MB": statistics.median(o["memory_mb"] for o in opened),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python")
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print("| events | what | ours | openhands-sdk | ours / theirs |")
    print("|--:|---|--:|--:|--:|")
    for count in map(int, arguments.sizes.split(",")):
        ours = measure(sys.executable, Path(__file__), count, arguments.rounds)
        theirs = (
            measure(arguments.peer_python, PEER, count, arguments.rounds)
            if arguments.peer_python
            else {}
        )
        for measurement, value in ours.items():
            peer_value = theirs.get(measurement)
            comparison = f"{peer_value:,.2f} | {value / peer_value:.2f}" if peer_value else " | "
            print(f"| {count:,} | {measurement} | {value:,.2f} | {comparison} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        print(json.dumps(make(Path(sys.argv[2]), int(sys.argv[3]))))
    elif sys.argv[1:2] == ["open"]:
        print(json.dumps(reopen(Path(sys.argv[2]))))
    else:
        main()
