"""The cost of the archive of runs: a durable append to the log with and without it.

    python bench/run_archive.py [--postgresql URL] [--events 1000] [--rounds 3]

Without URL, only SQLite is measured. Both sides append the same events of 1 kB through the stream,
in turns on the same disk, so that other work on the machine slows both. Prints a Markdown table of
milliseconds for each append.
"""

import argparse
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from resolver.entrypoints.webhook.run_recorder import RunRecorder
from resolver.events.observations import CmdOutput
from resolver.events.stores import JsonlStore
from resolver.events.stream import EventStream
from resolver.storage.database import parse_database_url
from resolver.storage.run_archive import RunArchive, RunClaim

CLAIM = RunClaim(1, 1)
BLOCK = 50
"""Number of appends after which it is the other side's turn."""


def open_stream(folder: Path, archive: RunArchive | None) -> tuple[EventStream, JsonlStore]:
    """A stream on a new log, with a copy in the archive if there is one."""
    recorder, run = None, uuid.uuid4().hex
    if archive is not None:
        state = archive.record_claim(run, CLAIM)
        recorder = RunRecorder(archive, run, CLAIM, state, folder)
    store = JsonlStore(folder / run / "events.jsonl", copy=recorder)
    return EventStream(store), store


def append(stream: EventStream, count: int) -> list[float]:
    """The milliseconds of each of `count` appends."""
    durations = []
    for _ in range(count):
        event = CmdOutput(cause=None, exit_code=0, content="x" * 1000)
        started = time.perf_counter()
        stream.add(event)
        durations.append((time.perf_counter() - started) * 1000)
    return durations


def measure(folder: Path, url: str, events: int) -> tuple[list[float], list[float]]:
    """The appends without and with the archive."""
    archive = RunArchive(parse_database_url(url))
    streams = [open_stream(folder, None), open_stream(folder, archive)]
    durations: tuple[list[float], list[float]] = ([], [])
    for _ in range(0, events, BLOCK):
        for (stream, _store), found in zip(streams, durations, strict=True):
            found.extend(append(stream, BLOCK))
    for _stream, store in streams:
        store.close()
    archive.close()
    return durations


def row(name: str, durations: list[float]) -> str:
    ordered = sorted(durations)
    p99 = ordered[int(len(ordered) * 0.99)]
    return f"| {name} | {statistics.median(ordered):.2f} | {p99:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgresql", default="")
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print("| append | median, ms | p99, ms |\n|---|--:|--:|")
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        urls = {"SQLite": f"sqlite:///{folder}/bench.db", "PostgreSQL": given.postgresql}
        for name, url in urls.items():
            if not url:
                continue
            without: list[float] = []
            archived: list[float] = []
            for _ in range(given.rounds):
                one, other = measure(Path(folder), url, given.events)
                without += one
                archived += other
            print(row("file alone", without))
            print(row(f"file and {name}", archived))


if __name__ == "__main__":
    main()
