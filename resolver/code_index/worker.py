"""The process that parses a repository's code, with limited resources and system calls and without
secrets.

It reads one JSON object per line from stdin, some of them followed by the bytes of a file, and
writes one JSON object per line to stdout.
"""

import json
import mmap
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from io import RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

from resolver.code_index.codebase import CodeBase
from resolver.code_index.confinement import confine_process, limit_resources
from resolver.code_index.grammars import load_grammars
from resolver.code_index.languages import language_of

_CPU_SECONDS = 900
_FILES_SHARE = 0.5
"""Share of the memory that files may fill; the rest is for the graph that is built from them."""


def run_worker() -> None:
    """Answer questions until the input ends.

    The first line is {"memory": bytes, "file_seconds": seconds, "seconds": seconds}, with seconds
    of processor time. It is answered when the process is ready.
    """
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    bounds = json.loads(source.readline())
    load_grammars()
    limit_resources(bounds["memory"], _CPU_SECONDS)
    codebase = CodeBase()
    # Opened before the confinement, after which no file can be opened.
    memory = Path("/proc/self/statm").open("rb", buffering=0)  # noqa: SIM115 - open to the end
    is_filtered = confine_process()
    _answer(sink, {"filtered": is_filtered})
    memory_for_files = int(bounds["memory"] * _FILES_SHARE)
    is_over = processor_time_past(bounds["seconds"])
    while line := source.readline():
        request: dict[str, Any] = json.loads(line)
        if "file" in request:
            content = source.read(request["size"])
            if is_over() or _used_memory(memory) > memory_for_files:
                codebase.leave_out(int(bool(language_of(request["file"]))))
            else:
                codebase.add(request["file"], content, processor_time_past(bounds["file_seconds"]))
        elif "search" in request:
            results = codebase.search(request["search"], request["below"])
            _answer(sink, [asdict(term) for term in results])
        elif "explore" in request:
            walks = codebase.explore(
                request["explore"], request["directions"], request["depth"], request["kinds"]
            )
            _answer(sink, [asdict(walk) for walk in walks])
        else:
            _answer(sink, asdict(codebase.build(is_filtered)))


def _used_memory(memory: RawIOBase) -> int:
    """Return the bytes of address space of this process.

    `getrusage` can't be used: its maximum includes the memory of the host process before exec.
    """
    memory.seek(0)
    pages = (memory.read(100) or b"0").split()[0]
    return int(pages) * mmap.PAGESIZE


def processor_time_past(seconds: float) -> Callable[[], bool]:
    """Return a function that returns True once this process has used that many more seconds of
    processor time. Time in which a busy machine does not run the process does not count."""
    deadline = time.process_time() + seconds
    return lambda: time.process_time() > deadline


def _answer(sink: BinaryIO, data: object) -> None:
    sink.write(json.dumps(data).encode() + b"\n")
    sink.flush()


if __name__ == "__main__":
    run_worker()
