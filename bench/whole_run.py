"""Whole runs of `resolver action` against a GitHub, a git server and a model on loopback.

    python bench/whole_run.py [--runtime docker|local] [--files 100,1000] [--megabytes 10]
        [--comments 100] [--steps 20] [--parallel 2]

A mention on an issue; the model asks for commands, changes one file and finishes; verification is
off, because the repository has no tests. The first scenario has 100 files of 1 kB, no further
comments, 3 steps and 1 run; each option varies one of these. Prints one JSON line a scenario.
Times in seconds begin with the start of the process, which has the event; memory is the largest
resident set of the process, without its children; bytes are the bodies of the servers' answers.
For parallel runs the slowest of each is shown, and the sum of requests, bytes and memory.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from resolver.events.lifecycle import StageCompleted
from resolver.events.log import read_log
from tests.parts.github import GitHubServer
from tests.parts.github_server.app import GitHubApp
from tests.parts.github_server.state import World
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.runs import bash, finish
from tests.parts.wsgi import serve

RESOLVER = str(Path(sys.executable).parent / "resolver")
REPOSITORY = "octo/bench"
# Starts a command and writes the largest memory of its process, in kB, to a file. The kernel counts
# the memory of whoever starts a process as the process's own, and the benchmark's is large.
MEASURE = """
import os, sys
process = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(process, 0)
with open(sys.argv[1], "w") as file:
    file.write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""
DIGITS_AS_LETTERS = str.maketrans("0123456789", "abcdefghij")


@dataclass(frozen=True)
class Scenario:
    """What a run meets. kilobytes: of each file. comments: of the issue, 300 characters each."""

    label: str
    files: int = 100
    kilobytes: int = 1
    comments: int = 0
    steps: int = 3
    parallel: int = 1


@dataclass(frozen=True)
class Request:
    """A request to the GitHub: when it came, and the bytes of the body of its answer."""

    at: float
    method: str
    path: str
    size: int


class Recorder:
    """Wraps a WSGI application and keeps its requests."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app
        self.requests: list[Request] = []

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterator[bytes]:
        at, size = time.time(), 0
        for chunk in self._app(environ, start):
            size += len(chunk)
            yield chunk
        self.requests.append(Request(at, environ["REQUEST_METHOD"], environ["PATH_INFO"], size))


class Model:
    """Answers each conversation with commands, then with a change, then with the end."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self.arrivals: list[float] = []

    def __call__(self, body: dict[str, Any]) -> Answer:
        self.arrivals.append(time.time())
        done = sum(message["role"] == "tool" for message in body["messages"])
        if done < self._steps - 2:
            # In letters: actions that differ in numbers only are taken for a loop.
            return bash(f"echo step {str(done).translate(DIGITS_AS_LETTERS)}")
        if done == self._steps - 2:
            return bash("echo 'the change' >> README.md")
        return finish("Change the page")


def make_files(scenario: Scenario) -> dict[str, bytes]:
    """Return the files: lines of text, which git compresses about as well as source code."""
    words = random.Random(7)
    vocabulary = [f"word{words.randrange(10**6)}" for _ in range(5_000)]
    files = {"README.md": b"# Bench\n"}
    for number in range(scenario.files):
        count = scenario.kilobytes * 1024 // 11
        text = " ".join(words.choices(vocabulary, k=count))
        files[f"src/{number // 500}/file{number}.txt"] = text.encode()
    return files


def commit(git_dir: Path, files: dict[str, bytes]) -> None:
    """Commit the files on main of a bare repository, by git's own stream of imports."""
    done = subprocess.Popen(
        ["git", "fast-import", "--quiet", "--force"], cwd=git_dir, stdin=subprocess.PIPE
    )
    assert done.stdin is not None
    with done.stdin as stream:
        stream.write(b"commit refs/heads/main\ncommitter Ada <ada@example.org> 1760000000 +0000\n")
        stream.write(b"data 5\nBegin\ndeleteall\n")
        for name, content in files.items():
            stream.write(
                f"M 100644 inline {name}\ndata {len(content)}\n".encode() + content + b"\n"
            )
    if done.wait():
        raise SystemExit("git fast-import failed")


def run(folder: Path, github: GitHubServer, endpoint: ModelEndpoint, issue: Any, runtime: str) -> (
    dict[str, float]
):  # fmt: skip
    """Run the Action once; the figures that the process and its log show."""
    comment = github.add_comment(issue, "@agent please change the page", "mona")
    (folder / "event.json").write_text(json.dumps(github.event_issue_comment(comment)))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "LLM_MODEL": "openai/scripted",
        "LLM_API_KEY": "none-none-none",
        "LLM_BASE_URL": endpoint.url,
        "GITHUB_TOKEN": github.token_for("resolver-bot", REPOSITORY),
        "GITHUB_API_URL": github.api_url,
        "GITHUB_SERVER_URL": github.server_url,
        "GITHUB_GRAPHQL_URL": github.graphql_url,
        "GITHUB_EVENT_NAME": "issue_comment",
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_OUTPUT": str(folder / "outputs"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "GITHUB_RUN_ID": str(issue.number),
        "RESOLVER_RUNTIME": runtime,
        "RESOLVER_IMAGE": "resolver-test/python:latest",
        "RESOLVER_VERIFY": "false",
        "RESOLVER_MAX_ITERATIONS": "2000",
    }
    memory = folder / "memory"
    command = [sys.executable, "-I", "-S", "-c", MEASURE, str(memory), RESOLVER, "action"]
    started = time.time()
    with (folder / "printed").open("wb") as printed:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=printed, stderr=printed, check=False
        )
    ended = time.time()
    if done.returncode:
        raise SystemExit((folder / "printed").read_text())
    events = list(read_log(folder / "resolver-output" / "events.jsonl"))
    stages = {e.stage: e.timestamp.timestamp() for e in events if isinstance(e, StageCompleted)}
    return {
        "started": started,
        "sandbox ready, s": stages["sandbox"] - started,
        "ended": ended,
        "memory, MB": int(memory.read_text()) / 1024,
    }


def measure(scenario: Scenario, runtime: str) -> dict[str, Any]:
    """Return the figures of a scenario."""
    with tempfile.TemporaryDirectory() as name, closing(ModelEndpoint()) as endpoint:
        root = Path(name)
        app = GitHubApp(World(root / "github"))
        recorder = Recorder(app)
        with serve(recorder, threads=8 * scenario.parallel) as address:
            github = GitHubServer(address.port, app)
            return _measure(scenario, runtime, root, github, endpoint, recorder)


def _measure(
    scenario: Scenario,
    runtime: str,
    root: Path,
    github: GitHubServer,
    endpoint: ModelEndpoint,
    recorder: Recorder,
) -> dict[str, Any]:
    model = Model(scenario.steps)
    endpoint.answer_with(model)
    github.add_user("resolver-bot")
    repository = github.create_repository(REPOSITORY)
    commit(Path(repository.git_dir), make_files(scenario))
    github.grant("mona", REPOSITORY, "write")
    github.grant("resolver-bot", REPOSITORY, "write")
    issues = []
    for number in range(scenario.parallel):
        issue = github.create_issue(REPOSITORY, f"The page is old ({number})", "Please help.")
        for comment in range(scenario.comments):
            github.add_comment(issue, f"Comment {comment}. " + "It is so. " * 28, "zoe")
        issues.append(issue)

    def run_issue(issue: Any) -> dict[str, float]:
        folder = root / f"run{issue.number}"
        folder.mkdir()
        return run(folder, github, endpoint, issue, runtime)

    with ThreadPoolExecutor(scenario.parallel) as pool:
        runs = list(pool.map(run_issue, issues))
    return {"scenario": scenario.label, **figures(runs, model.arrivals, recorder.requests)}


def figures(
    runs: list[dict[str, float]], asked: list[float], requests: list[Request]
) -> dict[str, float]:
    """Return the times from the first start on, and the sums of what was used."""
    started = min(run["started"] for run in runs)
    ended = max(run["ended"] for run in runs)
    comments = [r.at for r in requests if r.method == "POST" and r.path.endswith("/comments")]
    pulls = [r.at for r in requests if r.method == "POST" and r.path.endswith("/pulls")]
    is_git = [r for r in requests if ".git/" in r.path]
    result = {
        "event to first comment, s": comments[0] - started,
        "event to sandbox ready, s": max(run["sandbox ready, s"] for run in runs),
        "event to first model request, s": asked[0] - started,
        "last reply to pull request, s": max(pulls) - max(asked),
        "pull request to end of process, s": ended - max(pulls),
        "whole run, s": ended - started,
        "API requests": len(requests) - len(is_git),
        "git requests": len(is_git),
        "MB fetched": sum(r.size for r in requests) / 1e6,
        "memory, MB": sum(run["memory, MB"] for run in runs),
    }
    return {name: round(value, 3) for name, value in result.items()}


def scenarios(options: argparse.Namespace) -> Iterator[Scenario]:
    """Yield the scenario that the others vary, and then those."""
    base = Scenario("base")
    yield base
    for files in options.files:
        yield replace(base, label=f"{files:,} files", files=files)
    for megabytes in options.megabytes:
        yield replace(base, label=f"{megabytes:,} MB", files=megabytes, kilobytes=1024)
    for comments in options.comments:
        yield replace(base, label=f"{comments:,} comments", comments=comments)
    for steps in options.steps:
        yield replace(base, label=f"{steps:,} steps", steps=steps)
    for parallel in options.parallel:
        yield replace(base, label=f"{parallel} runs at once", parallel=parallel)


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runtime", choices=["docker", "local"], default="docker")
    for name in ("files", "megabytes", "comments", "steps", "parallel"):
        parser.add_argument(f"--{name}", type=numbers, default=[])
    options = parser.parse_args()
    for scenario in scenarios(options):
        print(json.dumps(measure(scenario, options.runtime)), flush=True)


if __name__ == "__main__":
    main()
