"""Tests of `resolver serve`: its requirements, its output, and its end."""

import fcntl
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import RESOLVER, CommandLine, Ended
from tests.parts.waiting import until
from tests.webhook.serving import SECRET


class ServeCommand(CommandLine):
    """`resolver serve` with all that it needs, in a folder of its own."""

    def __init__(self, folder: Path, endpoint: ModelEndpoint) -> None:
        super().__init__(folder, endpoint)
        self.environment |= {
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "RESOLVER_BOT_LOGIN": "resolver-bot",  # there is no GitHub to ask
            "RESOLVER_DATA_DIR": str(folder / "runs"),
            "RESOLVER_DATABASE_URL": f"sqlite:///{folder}/resolver.db",
        }

    def refused(self, *options: str, **environment: str) -> Ended:
        """Return the error of a server that must not start."""
        done = self.call("serve", "--port", "0", *options, **environment)
        assert done.exit_code == 2, done.stderr
        assert done.stderr.count("\n") == 2, done.stderr
        return done


@pytest.fixture
def server(
    tmp_path: Path, model_endpoint: ModelEndpoint, monkeypatch: pytest.MonkeyPatch
) -> ServeCommand:
    monkeypatch.setattr(tempfile, "tempdir", None)  # a server sets it, for its whole process
    return ServeCommand(tmp_path, model_endpoint)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("GITHUB_WEBHOOK_SECRET", None), ("GITHUB_TOKEN", ""), ("LLM_MODEL", "  ")],
)
def test_it_does_not_start_without(server: ServeCommand, variable: str, value: str | None) -> None:
    del server.environment[variable]
    given = {} if value is None else {variable: value}
    assert variable in server.refused(**given).stderr
    assert not (server.folder / "resolver.db").exists()


@pytest.mark.parametrize(
    "url",
    ["nonsense", "sqlite:///:memory:", "mysql://h/x"],
)
def test_a_database_that_can_not_be_used_is_named(server: ServeCommand, url: str) -> None:
    assert "RESOLVER_DATABASE_URL" in server.refused(RESOLVER_DATABASE_URL=url).stderr


@pytest.mark.parametrize("place", ["runs/.lock", "resolver.db.lock"])
def test_a_second_server_in_the_same_place_does_not_start(server: ServeCommand, place: str) -> None:
    file = server.folder / place
    file.parent.mkdir(exist_ok=True)
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another server is already using" in server.refused().stderr


def test_a_port_in_use_is_named(server: ServeCommand) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = server.call("serve", "--port", port)
    assert done.exit_code == 2
    assert f"can't listen on 127.0.0.1:{port}: Address already in use" in done.stderr


def test_a_database_that_does_not_answer_is_named_without_its_password(
    server: ServeCommand,
) -> None:
    url = "postgresql://resolver:pw-canary-77aa@127.0.0.1:1/resolver"
    done = server.run("serve", "--port", "0", RESOLVER_DATABASE_URL=url)
    assert done.exit_code == 2 and "RESOLVER_RUN_STORE" in done.stderr
    store = {"RESOLVER_RUN_STORE": str(server.folder / "runs")}
    done = server.run("serve", "--port", "0", RESOLVER_DATABASE_URL=url, **store)
    assert done.exit_code == 2
    assert "postgresql://resolver:***@127.0.0.1:1/resolver can't be used" in done.stderr
    assert done.stderr.count("\n") == 2, done.stderr
    assert "pw-canary" not in done.stderr


@pytest.fixture
def started(server: ServeCommand) -> Iterator["subprocess.Popen[bytes]"]:
    with (server.folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [RESOLVER, "serve", "--host", "::1", "--port", "0"],
            env=server.environment,
            cwd=server.folder,
            stderr=log,
        )
    yield process
    process.kill()
    process.wait()


def test_an_idle_server_says_where_it_is_and_ends_with_sigint(
    server: ServeCommand, started: "subprocess.Popen[bytes]"
) -> None:
    log = server.folder / "log"
    until(lambda: "runs in" in log.read_text())
    text = log.read_text()
    assert "listening on http://[::1]:" in text
    assert f"sqlite:///{server.folder}/resolver.db, runs in {server.folder}/runs" in text
    started.send_signal(signal.SIGINT)
    assert started.wait(60) == 0
    assert "stopped by SIGINT" in log.read_text()
    assert len(log.read_text().splitlines()) == 3, log.read_text()
    for private in ("runs", "resolver.db", "resolver.db.lock"):
        assert (server.folder / private).stat().st_mode & 0o077 == 0, private
