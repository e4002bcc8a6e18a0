"""The process that parses source files, with limited resources and system calls and without
secrets.

It reads the limits as a JSON object, then for each file a JSON object in a line and the bytes of
the file, and writes a JSON array for each file: a `SourceFile`.
"""

import json
import sys
import time
from collections.abc import Callable

from resolver.code_index.confinement import confine_process, limit_resources
from resolver.code_index.grammars import load_grammars
from resolver.code_index.source import read_source


def run_worker() -> None:
    """Parse files until the input ends.

    The first line is {"memory": bytes, "output": bytes, "file_seconds": seconds, "seconds":
    seconds}, with seconds of processor time.
    """
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    bounds = json.loads(source.readline())
    load_grammars()
    limit_resources(bounds["memory"], bounds["output"], bounds["seconds"])
    confine_process()
    while line := source.readline():
        file = json.loads(line)
        is_late = processor_time_past(bounds["file_seconds"])
        facts = read_source(source.read(file["size"]), file["language"], is_late)
        sink.write(json.dumps(facts).encode() + b"\n")
        sink.flush()


def processor_time_past(seconds: float) -> Callable[[], bool]:
    """Return a function that returns True once this process has used that many more seconds of
    processor time. Time in which a busy machine does not run the process does not count."""
    deadline = time.process_time() + seconds
    return lambda: time.process_time() > deadline
