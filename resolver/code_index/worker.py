"""The process that parses a repository's code, with limited resources and system calls and without
secrets.

It reads one JSON object per line from stdin, some of them followed by the bytes of a file, and
writes one JSON object per line to stdout.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from resolver.code_index.codebase import CodeBase
from resolver.code_index.confinement import confine_process, limit_resources
from resolver.code_index.grammars import load_grammars
from resolver.code_index.languages import language_of

_CPU_SECONDS = 900


def run_worker() -> None:
    """Answer questions until the input ends.

    The first line is {"memory": bytes, "file_seconds": seconds, "seconds": seconds}, with seconds
    of processor time.
    """
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    bounds = json.loads(source.readline())
    load_grammars()
    limit_resources(bounds["memory"], _CPU_SECONDS)
    codebase = CodeBase()
    is_confined = confine_process()
    is_over = processor_time_past(bounds["seconds"])
    left_out = 0
    while line := source.readline():
        request: dict[str, Any] = json.loads(line)
        answer: dict[str, Any]
        if path := request.get("file"):
            content = source.read(request["size"])
            is_late = processor_time_past(bounds["file_seconds"])
            is_left_out = (
                language_of(path) if is_over() else not codebase.add(path, content, is_late)
            )
            left_out += bool(is_left_out)
            continue
        if "search" in request:
            found = codebase.search(request["search"], request["below"])
            answer = {"found": [asdict(term) for term in found]}
        elif "explore" in request:
            arguments = (request["directions"], request["depth"], request["kinds"])
            walks = codebase.explore(request["explore"], *arguments)
            answer = {"walks": [asdict(walk) for walk in walks]}
        else:
            answer = {"files": codebase.build(), "left_out": left_out, "confined": is_confined}
        sink.write(json.dumps(answer).encode() + b"\n")
        sink.flush()


def processor_time_past(seconds: float) -> Callable[[], bool]:
    """Return a function that returns True once this process has used that many more seconds of
    processor time. Time in which a busy machine does not run the process does not count."""
    deadline = time.process_time() + seconds
    return lambda: time.process_time() > deadline


if __name__ == "__main__":
    run_worker()
