"""The course of one delivery: its functions, its requests to GitHub and its processes.

A whole run, because only calls show which function calls which, and all stages share what was read:
any of them could read it again.
"""

import os
import re
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from tests.parts.github_server.exchange import Exchange
from tests.parts.runs import bash, finish
from tests.runs.test_github import FIX, SELDOM, SUMMARY, Scenario, scenario

__all__ = ["scenario"]

ROOT = Path(__file__).parents[2]
PACKAGE = str(ROOT / "resolver")
HOP = re.compile(r"^\d+\. `resolver\.([\w.]+)` `([\w.]+)`")

API = (
    (r"POST /graphql", "the conversation; refs; the request again", 3),
    (r"GET /repos/octo/calc/pulls\?.*state=all", "pull requests of an earlier attempt", 1),
    (r"GET .*/collaborators/mona/permission$", "whether the requester may do so, and still may", 2),
    (r"POST .*/reactions$", "the sign that the request was seen", 1),
    (r"POST .*/issues/1/comments$", "the run's comment", 1),
    (r"GET .*/matching-refs/heads/agent/issue-1-$", "open work on the issue", 1),
    (r"POST .*/pulls$", "the pull request", 1),
    (r"PATCH .*/issues/comments/\d+$", "how the run ended", 1),
)
GIT = (
    (r"calc\.git/info/refs\?service=git-upload-pack", "the commits", 1),
    (r"calc\.git/git-upload-pack", "their objects", 1),
    (r"calc\.git/info/refs\?service=git-receive-pack", "ledger, branch, ledger with log", 3),
    (r"calc\.git/git-receive-pack", "what is pushed", 3),
)
MOST_PROCESSES = 40
"""Processes on the host. One is the action execution server, the others are git."""

Table = tuple[tuple[str, str, int], ...]


def shown(made: Exchange) -> str:
    path = "/graphql" if made.kind == "graphql" else made.path
    query = "&".join(f"{name}={value}" for name, value in sorted(made.query.items()))
    return f"{made.method} {path}" + (f"?{query}" if query else "")


def purposes(made: list[str], table: Table) -> Counter[str]:
    """Return the number of requests for each purpose; an unknown request is its own purpose."""
    return Counter(
        next((what for pattern, what, _ in table if re.search(pattern, request)), request)
        for request in made
    )


def listed_hops() -> list[tuple[str, str]]:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    section = page.partition("<!-- hops -->")[2].partition("<!-- end of hops -->")[0]
    return [match.groups() for match in map(HOP.match, section.splitlines()) if match]  # type: ignore[misc]


class ProcessRecorder:
    """Records the programs that the package starts between `start` and `stop`."""

    def __init__(self) -> None:
        self.processes: list[str] = []
        self._active = False
        sys.addaudithook(self._audit)  # it can't be removed

    def start(self) -> None:
        self._active = True

    def stop(self) -> None:
        self._active = False

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._active and event == "subprocess.Popen" and called_by_package(sys._getframe()):
            self.processes.append(Path(os.fsdecode(arguments[1][0])).name)


def called_by_package(frame: FrameType | None) -> bool:
    while frame is not None and not frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame is not None


class CallRecorder:
    """Records each function of the package when it is first called, in any thread."""

    def __init__(self) -> None:
        self.called: dict[tuple[str, str], None] = {}

    def __enter__(self) -> "CallRecorder":
        threading.setprofile(self._record)
        sys.setprofile(self._record)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _record(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            module = frame.f_code.co_filename[len(PACKAGE) + 1 : -len(".py")].replace("/", ".")
            self.called.setdefault((module, frame.f_code.co_qualname))


def test_a_mention_passes_through_the_listed_functions_with_few_requests_and_processes(
    scenario: Scenario,
) -> None:
    scenario.endpoint.script(bash("cat calc.py"), FIX, bash("python3 calc.py"), finish(SUMMARY))
    event = scenario.github.event_issue_comment(scenario.mention())
    recorder = ProcessRecorder()
    recorder.start()
    with CallRecorder() as calls:
        done = scenario.action(event, **SELDOM)
    recorder.stop()
    assert done.exit_code == 0, done.stdout + done.stderr
    listed = listed_hops()
    assert len(listed) > 20
    assert [hop for hop in calls.called if hop in listed] == listed
    api = [
        shown(request)
        for request in scenario.github.requests
        if request.kind in {"rest", "graphql"}
    ]
    git = [shown(request) for request in scenario.github.requests if request.kind == "git"]
    assert purposes(api, API) == {what: many for _, what, many in API}
    assert purposes(git, GIT) == {what: many for _, what, many in GIT}
    programs = Counter(recorder.processes)
    assert programs["git"] > 0
    assert len(recorder.processes) <= MOST_PROCESSES, programs
