"""How long a run takes to its first model request and to end after its last line, and its memory,
beside a process that only imports litellm.

    python bench/starting.py [--rounds 5] [--runtime local|docker]

Each round starts two fresh processes in turn: `python -c "import litellm"`, which leaves as soon as
it has, and `resolver resolve` on a small checkout with a model endpoint on loopback that asks for
one command and then finishes.
Memory is the largest resident set of the process. Prints medians as a table.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
IMPORT = "import litellm, os; os._exit(0)"
ISSUE = "Say hello\n\nCreate the file hello.txt with the word hello in it.\n"


class Endpoint(ThreadingHTTPServer):
    """A model that asks for one command in each run. Remembers when it was asked, and how much
    processor time the process that it was told of had taken by then."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.arrivals: list[tuple[float, float]] = []
        self.asking = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    server: Endpoint

    def do_POST(self) -> None:
        self.server.arrivals.append((time.monotonic(), processor_time(self.server.asking)))
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked_before = any(m["role"] == "tool" for m in request["messages"])
        body = json.dumps(answer("finish" if asked_before else "execute_bash")).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def processor_time(process: int) -> float:
    """Seconds that the process itself, without its children, has been on a processor."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def answer(tool: str) -> dict[str, Any]:
    arguments = {"message": "Done"} if tool == "finish" else {"command": "echo hello > hello.txt"}
    call = {"name": tool, "arguments": json.dumps(arguments)}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call_{tool}", "type": "function", "function": call}],
    }
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010},
    }


@dataclass(frozen=True)
class Timed:
    """A process that has ended: start, last line and end by the monotonic clock; processor time
    in seconds, the largest resident set in MB."""

    started: float
    last: float
    ended: float
    processor: float
    memory: float


def run(command: list[str], folder: Path, environment: dict[str, str], endpoint: Endpoint) -> Timed:
    """Run a command to its end."""
    started = time.monotonic()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    endpoint.asking = process.pid
    assert process.stdout is not None
    text, last = [], started
    while line := process.stdout.readline():
        text.append(line.decode())
        last = time.monotonic()
    _, status, usage = os.wait4(process.pid, 0)
    ended = time.monotonic()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit("".join(text))
    processor = usage.ru_utime + usage.ru_stime
    return Timed(started, last, ended, processor, usage.ru_maxrss / 1024)


def make_checkout(folder: Path) -> Path:
    """A repository of one commit, and the issue's file beside it."""
    checkout = folder / "checkout"
    checkout.mkdir()
    (checkout / "README.md").write_text("# Hello\n")
    (folder / "issue.md").write_text(ISSUE)
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-qm", "Begin"]):
        subprocess.run(["git", *arguments], cwd=checkout, check=True)
    return checkout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runtime", choices=["local", "docker"], default="local")
    arguments = parser.parse_args()
    endpoint = Endpoint()
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LLM_MODEL": "gpt-4o",
        "LLM_API_KEY": "sk-of-the-measurement",
        "LLM_BASE_URL": endpoint.url,
    }
    rows: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkout = make_checkout(folder)
        for round_ in range(arguments.rounds + 1):
            alone = run([sys.executable, "-c", IMPORT], folder, environment, endpoint)
            endpoint.arrivals.clear()
            command = [
                str(BIN / "resolver"), "resolve", str(checkout), "--issue", "issue.md",
                "--runtime", arguments.runtime, "--output", f"output-{round_}",
            ]  # fmt: skip
            whole = run(command, folder, environment, endpoint)
            if round_ == 0:
                continue  # which writes bytecode and fills the disk's cache
            at, processor = endpoint.arrivals[0]
            imported = alone.ended - alone.started
            for label, value in {
                "`import litellm`, s": imported,
                "first model request, s": at - whole.started,
                "first model request after `import litellm`, s": at - whole.started - imported,
                "`import litellm`, processor s": alone.processor,
                "first model request, processor s": processor,
                "end after the last line, s": whole.ended - whole.last,
                "memory of `import litellm`, MB": alone.memory,
                "memory of the run, MB": whole.memory,
            }.items():
                rows.setdefault(label, []).append(value)
    print("| what | median | least | most |")
    print("|---|--:|--:|--:|")
    for label, values in rows.items():
        print(
            f"| {label} | {statistics.median(values):.2f} | {min(values):.2f} | {max(values):.2f} |"
        )


if __name__ == "__main__":
    main()
