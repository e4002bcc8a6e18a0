"""A `resolver serve` process on a free port, a GitHub that delivers to it, its scripted model."""

import dataclasses
import hashlib
import hmac
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request
import uuid
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import uvicorn
from prometheus_client.parser import text_string_to_metric_families

from resolver.entrypoints.http_server import listen, server_settings
from resolver.entrypoints.webhook.request_queue import QueuedRequest, RequestKind
from resolver.models.run import Trigger
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Comment, Issue, Repository
from tests.parts.model_endpoint import Answer, ModelEndpoint, error
from tests.parts.runs import MODEL_KEY, RESOLVER, bash, finish
from tests.parts.waiting import until

SECRET = "webhook-canary-8d1f5b3a7c9e2046"
FIX = bash("sed -i 's/a - b/a + b/' calc.py")
SUMMARY = "Make add add\n\n`add` subtracted; it adds now."
FILES = {"calc.py": "def add(a, b):\n    return a - b\n"}
BOT = "resolver-bot"

PLAN_NAME = re.compile(r"plan-(\w+)")


def series_of(text: bytes) -> dict[str, float]:
    """Return the value of each of our metrics, by its name without `resolver_` and its labels."""
    return {
        sample.name.removeprefix("resolver_") + "".join(f" {v}" for v in sample.labels.values()): (
            sample.value
        )
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if sample.name.startswith("resolver_") and not sample.name.endswith("_created")
    }


class ServedApp:
    """A web application on a free port, served by a thread with the server's own settings."""

    def __init__(self, app: Any, connections: int = 1000) -> None:
        self._listening = listen("127.0.0.1", 0)
        self.port: int = self._listening.getsockname()[1]
        self._server = uvicorn.Server(server_settings(app, connections))
        self._thread = threading.Thread(target=self._server.run, args=([self._listening],))
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(60)


class Plans:
    """The model's answers, by the word `plan-NAME` in the issue's title.

    The next answer follows from the conversation, so that a run that starts over gets the same.
    `calls` has the name and the moment of each request.
    """

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self.endpoint = endpoint
        self.calls: list[tuple[str, float]] = []
        self._plans: dict[str, tuple[Answer, ...]] = {}
        self._lock = threading.Lock()
        endpoint.answer_with(self._answer)

    def add(self, name: str, *answers: Answer) -> None:
        self._plans[name] = answers

    def times(self, name: str) -> list[float]:
        return [moment for called, moment in self.calls if called == name]

    def _answer(self, body: dict[str, Any]) -> Answer:
        found = PLAN_NAME.search(json.dumps(body["messages"]))
        name = found[1] if found else ""
        with self._lock:
            self.calls.append((name, time.monotonic()))
        reply_count = sum(m["role"] == "assistant" for m in body["messages"])
        plan = self._plans.get(name, ())
        return (
            plan[reply_count]
            if reply_count < len(plan)
            else error(400, f"plan {name!r} has no more")
        )


class Forge:
    """The test GitHub as these tests use it: repositories with `mona` as maintainer."""

    def __init__(self, github: GitHubServer) -> None:
        self.github = github
        for login in ("mona", BOT):
            github.add_user(login)
        self.token = github.token_for(BOT)

    def repository(self, name: str) -> str:
        self.github.create_repository(name, FILES)
        for login in ("mona", BOT):
            self.github.grant(login, name, "write")
        return name

    def issue(self, repository: str, plan: str) -> Issue:
        return self.github.create_issue(repository, f"plan-{plan}", "2 + 2 gives 0.", author="zoe")

    def mention(self, issue: Issue, author: str = "mona") -> dict[str, Any]:
        """The payload of a comment that asks."""
        comment = self.github.add_comment(issue, "@agent please fix this", author)
        return self.github.event_issue_comment(comment)

    @staticmethod
    def branches(repository: Repository) -> list[str]:
        listed = repository.git.text(
            "for-each-ref", "--format=%(refname:short)", "refs/heads/agent"
        )
        return listed.split()

    @staticmethod
    def pulls(repository: Repository) -> list[Issue]:
        return [i for i in list(repository.issues.values()) if i.pull is not None]

    @staticmethod
    def own_comments(issue: Issue) -> list[Comment]:
        """Comments of the bot on the issue."""
        return [c for c in list(issue.comments) if c.author.login == BOT]

    @staticmethod
    def final_comments(issue: Issue) -> list[Comment]:
        """Those of them that are not of a run that waits or is at work."""
        return [c for c in Forge.own_comments(issue) if " ending=progress " not in c.body]

    def done_once(self, issue: Issue) -> bool:
        """One branch, one pull request, one comment: and not more, which fails.

        The branches come last: reading them starts a git, and this is called until it is true.
        """
        pulls, comments = self.pulls(issue.repository), self.own_comments(issue)
        assert max(len(pulls), len(comments)) <= 1, [c.body for c in issue.comments]
        if not (len(pulls) == len(comments) == len(self.final_comments(issue)) == 1):
            return False
        branches = self.branches(issue.repository)
        assert len(branches) == 1, (branches, [c.body for c in issue.comments])
        return True


class Server:
    """`resolver serve` in `folder`, started and ended as often as wanted."""

    program = RESOLVER

    def __init__(self, folder: Path, forge: Forge, endpoint: ModelEndpoint, **more: str) -> None:
        self.folder = folder
        self.port = 0
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/root"),
            "LLM_MODEL": "openai/scripted",
            "LLM_API_KEY": MODEL_KEY,
            "LLM_BASE_URL": endpoint.url,
            "GITHUB_TOKEN": forge.token,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            **forge.github.addresses,
            "RESOLVER_RUN_STORE": str(self.runs),
            "RESOLVER_RUNTIME": "local",
            "RESOLVER_VERIFY": "false",
            "RESOLVER_PACE": '{"write_interval": 0, "first_wait": 0.05}',
            **more,
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> Path:
        """The folder that contains the logs and files of the runs."""
        return self.folder / "stored-runs"

    @property
    def log(self) -> str:
        """Everything it has written to stdout and stderr, over all starts."""
        return (self.folder / "log").read_text()

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None
        return self._process

    def start(self, *options: str) -> None:
        """Start it and wait until it listens."""
        with (self.folder / "log").open("ab") as log:
            before = log.tell()
            self._process = subprocess.Popen(
                [self.program, "serve", "--port", "0", *options],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )

        def listening() -> re.Match[str] | None:
            assert self.process.poll() is None, self.log
            return re.search(r"listening on http://127\.0\.0\.1:(\d+)/webhook", self.log[before:])

        try:
            self.port = int(until(listening)[1])
        except AssertionError:
            self.close()  # else other tests fail because of a process that is still running
            raise

    def end(self, number: signal.Signals) -> int:
        """Send a signal and wait; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(120)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.end(signal.SIGKILL)

    def deliver(
        self,
        payload: dict[str, Any] | bytes,
        event: str = "issue_comment",
        delivery: str = "",
        secret: str = SECRET,
    ) -> tuple[int, str]:
        """As GitHub sends it. A new delivery unless its id is given."""
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(
                "POST",
                "/webhook",
                body,
                {
                    "Content-Type": "application/json",
                    "User-Agent": "GitHub-Hookshot/0000000",
                    "X-GitHub-Delivery": delivery or str(uuid.uuid4()),
                    "X-GitHub-Event": event,
                    "X-Hub-Signature-256": f"sha256={digest}",
                },
            )
            answer = connection.getresponse()
            answer_body = json.loads(answer.read())
            return answer.status, answer_body.get("message") or answer_body["detail"]
        finally:
            connection.close()

    def metrics(self) -> dict[str, float]:
        """The value of each of our metrics, by its name and labels."""
        [address] = re.findall(r"metrics are on (http://\S+)", self.log)
        with urllib.request.urlopen(address, timeout=20) as answer:
            return series_of(answer.read())

    def everything(self) -> bytes:
        """All that it wrote: log, database, runs. A git that outlives the server may still be
        tidying up: what vanishes meanwhile is left out."""
        found = []
        for folder, _, names in os.walk(self.folder):
            for path in (Path(folder, name) for name in names):
                with suppress(FileNotFoundError):
                    found.append(path.read_bytes() if path.is_file() else b"")
        return b"".join(found)

    def check(self) -> None:
        """No secret anywhere, and nothing in the log that an operator would have to look into."""
        everything = self.everything()
        for name in ("LLM_API_KEY", "GITHUB_TOKEN", "GITHUB_WEBHOOK_SECRET"):
            assert self.environment[name].encode() not in everything, name
        # A run that ends without success is a warning, too.
        log = re.sub(r"WARNING \S+ (\S+ )?run \S+ for \S+: .*", "", self.log)
        for word in ("Traceback", "Warning", "WARNING", "CRITICAL"):
            assert word not in log, log


def started(
    trigger: Trigger, attempt: int = 1, outage_began: datetime | None = None
) -> QueuedRequest:
    """The request of a run, as its work begins."""
    return QueuedRequest(
        "delivery", RequestKind.RUN, trigger, attempt - 1, outage_began, attempts=attempt
    )


def plan_of_a_fix(delay: float = 0.0) -> tuple[Answer, ...]:
    """The fix, and the end."""
    return tuple(dataclasses.replace(a, delay=delay) for a in (FIX, finish(SUMMARY)))
