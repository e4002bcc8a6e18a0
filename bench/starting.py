"""How long a run takes to its first model request, beside a process that only imports litellm, and
how long `resolver --help` takes, beside a bare click program.

    python bench/starting.py [--rounds 5] [--runtime local|docker]

Each round starts fresh processes in turn: `python -c "import litellm"`, `resolver resolve` on a
small checkout with a model endpoint on loopback that asks for one command and then finishes, the
click program and `resolver --help`. Prints medians as a table.
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
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
IMPORT = "import litellm, os; os._exit(0)"
CLICK = "import click; click.Group('bare').main(['--help'])"
ISSUE = "Say hello\n\nCreate the file hello.txt with the word hello in it.\n"


class Endpoint(ThreadingHTTPServer):
    """A model that asks for one command in each run. Remembers when it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.arrivals: list[float] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    server: Endpoint

    def do_POST(self) -> None:
        self.server.arrivals.append(time.monotonic())
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


def run(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Run a command to its end and return its start and its end by the monotonic clock."""
    started = time.monotonic()
    process = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if process.returncode:
        raise SystemExit(process.stdout + process.stderr)
    return started, time.monotonic()


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
            alone = run([sys.executable, "-c", IMPORT], folder, environment)
            endpoint.arrivals.clear()
            command = [
                str(BIN / "resolver"), "resolve", str(checkout), "--issue", "issue.md",
                "--runtime", arguments.runtime, "--output", f"output-{round_}",
            ]  # fmt: skip
            started, _ = run(command, folder, environment)
            bare = run([sys.executable, "-c", CLICK], folder, environment)
            help_ = run([str(BIN / "resolver"), "--help"], folder, environment)
            if round_ == 0:
                continue  # which writes bytecode and fills the disk's cache
            imported, first = alone[1] - alone[0], endpoint.arrivals[0] - started
            for label, value in {
                "`import litellm`, s": imported,
                "first model request, s": first,
                "first model request after `import litellm`, s": first - imported,
                "`resolver --help` beside a bare click program, times": (help_[1] - help_[0])
                / (bare[1] - bare[0]),
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
