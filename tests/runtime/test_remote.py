"""Tests of `resolver sandbox serve`: access, limits, invalid requests and shutdown."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import docker
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resolver.cli.main import run
from resolver.config.settings import load_settings
from resolver.errors import Refused, SandboxError, UsageError
from resolver.events.actions import CmdRun
from resolver.events.observations import CmdOutput
from resolver.runs.common import open_host
from resolver.runs.wiring.sandbox import open_runtime
from resolver.runtime.base import SandboxSpec
from resolver.runtime.engine import RUN_LABEL
from resolver.runtime.remote.access import RemoteAccess
from resolver.runtime.remote.machine import RemoteMachine
from resolver.runtime.remote.protocol import MIN_TOKEN_CHARACTERS, SandboxRequest
from resolver.runtime.runtime import Runtime
from resolver.runtime.service.sandboxes import ServiceBounds
from tests.parts.sandbox_server import SANDBOX_TOKEN, SandboxServer
from tests.parts.waiting import becomes_true, until

ASKED = {"image": "", "run": "r", "memory": "1g", "cpus": 1.0, "pids": 64, "disk": 10**9}
NewServer = Callable[..., SandboxServer]


def client(server: SandboxServer, token: str = SANDBOX_TOKEN) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=30)


def echo(sandbox: Runtime) -> str:
    found = sandbox.execute(CmdRun(command="echo there"))
    assert isinstance(found, CmdOutput), found
    return found.content


@pytest.fixture
def new_server(tmp_path: Path) -> Iterator[NewServer]:
    """Starts a server of the test's own: new_server(option...)."""
    servers: list[SandboxServer] = []

    def start(*options: str, **environment: str) -> SandboxServer:
        folder = tmp_path / f"server-{len(servers)}"
        folder.mkdir()
        kind = () if "--runtime" in options else ("--runtime", "local")
        servers.append(SandboxServer(folder, *kind, *options, **environment))
        return servers[-1].start()

    yield start
    for server in servers:
        server.close()


# Who is let in


ENDPOINTS = [
    ("GET", "/v1/limits"), ("GET", "/"), ("GET", "/nowhere"), ("PUT", "/v1/sandboxes/abcdefgh"),
    ("DELETE", "/v1/sandboxes/abcdefgh"), ("PATCH", "/v1/limits"), ("GET", "/healthz/"),
    ("POST", "/v1/sandboxes/abcdefgh/streams/abcdefgh?offset=0"), ("GET", "//healthz"),
]  # fmt: skip


@pytest.mark.parametrize(
    "header",
    [
        None, "", "Bearer", "Bearer ", "Bearer wrong", f"Bearer {SANDBOX_TOKEN}x",
        f"Bearer {SANDBOX_TOKEN[:-1]}", f"bearer {SANDBOX_TOKEN}", f"Basic {SANDBOX_TOKEN}",
        SANDBOX_TOKEN, "Bearer t\u00f6ken",
    ],
)  # fmt: skip
def test_without_the_token_nothing_is_answered(
    local_sandbox_server: SandboxServer, header: str | None
) -> None:
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    for method, path in ENDPOINTS:
        connection = http.client.HTTPConnection("127.0.0.1", local_sandbox_server.port, timeout=20)
        connection.request(method, path, b"{}" if method in ("PUT", "POST") else None, headers)
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (401, b""), (method, path)
        connection.close()


def test_the_health_check_needs_no_token(local_sandbox_server: SandboxServer) -> None:
    answer = httpx.get(f"{local_sandbox_server.url}/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_a_body_without_the_token_is_not_read(local_sandbox_server: SandboxServer) -> None:
    with socket.create_connection(("127.0.0.1", local_sandbox_server.port), 20) as connection:
        head = b"PUT /v1/sandboxes/abcdefgh HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n"
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 401")


def test_a_wrong_token_is_a_clear_error(local_sandbox_server: SandboxServer) -> None:
    access = local_sandbox_server.access(token="x" * MIN_TOKEN_CHARACTERS)
    machine = RemoteMachine(SandboxSpec(image="", run="r"), access)
    with pytest.raises(SandboxError, match="does not accept the token") as refused:
        machine.__enter__()
    assert "RESOLVER_REMOTE_TOKEN" in refused.value.next_step


@pytest.mark.parametrize("token", [None, "", "short", " " * 20, "x" * 15, "t\u00f6ken" * 5])
def test_the_server_does_not_start_without_a_valid_token(
    token: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {} if token is None else {"RESOLVER_SANDBOX_TOKEN": token}
    assert run(["sandbox", "serve"], environment) == 2
    assert "RESOLVER_SANDBOX_TOKEN" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--host", "0.0.0.0"], "unencrypted"),
        (["--tls-cert", "x"], "only valid together"),
        (["--tls-cert", "/missing", "--tls-key", "/missing"], "can't be used"),
        (["--max-memory", "lots"], "not an amount of memory"),
        (["--name", "a.b"], "is not a valid name"),
        (["--host", "192.0.2.1", "--plain-http"], "can't listen"),
    ],
)
def test_unusable_options_are_named(
    options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {"RESOLVER_SANDBOX_TOKEN": SANDBOX_TOKEN}
    assert run(["sandbox", "serve", "--port", "0", *options], environment) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://sandboxes.example.org", "unencrypted"),
        ("http://127.0.0.1.example.org", "unencrypted"),
        ("http://localhost.example.org", "unencrypted"),
        ("ftp://127.0.0.1", "not that of a server"),
        ("https://", "not that of a server"),
        ("https://user:secret@h", "not that of a server"),
        ("https://h:port", "not that of a server"),
        ("https://h/?q", "not that of a server"),
        ("nonsense", "not that of a server"),
    ],
)
def test_a_token_goes_to_a_server_over_tls_only(url: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as wrong:
        RemoteAccess(url, SANDBOX_TOKEN)
    assert "secret" not in wrong.value.what


@pytest.mark.parametrize("url", ["http://localhost:1", "http://127.0.0.9", "http://[::1]:80/x/"])
def test_plain_http_is_allowed_to_this_machine(url: str) -> None:
    RemoteAccess(url, SANDBOX_TOKEN).close()


def test_plain_http_to_other_machines_needs_permission() -> None:
    RemoteAccess("http://sandboxes.example.org", SANDBOX_TOKEN, plain_http=True).close()


# TLS


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """A certificate for localhost, made by itself, and its key."""
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
         "-keyout", key, "-out", cert, "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


def test_over_tls_a_trusted_certificate_is_needed(
    new_server: NewServer, certificate: tuple[str, str], tmp_path: Path
) -> None:
    cert, key = certificate
    server = new_server("--tls-cert", cert, "--tls-key", key)
    url = f"https://localhost:{server.port}"
    spec = SandboxSpec(image="", run="tls")
    with Runtime(RemoteMachine(spec, server.access(url=url, ca=cert)), 30) as sandbox:
        assert echo(sandbox) == "there\n"
        sandbox.execute(CmdRun(command="printf %0500000d 1 > file"))
        sandbox.fetch(f"{sandbox.root}/file", tmp_path / "file", 500_000)
    for address, trusted in ((url, None), (f"https://127.0.0.1:{server.port}", cert)):
        machine = RemoteMachine(spec, server.access(url=address, ca=trusted))
        with pytest.raises(SandboxError, match="certificate that is not trusted") as refused:
            machine.__enter__()
        assert "`ca_file` in RESOLVER_REMOTE" in refused.value.next_step
    server.close()
    server.check_log()


def test_unreadable_certificates_are_named(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("no certificate")
    for ca in (tmp_path / "ca", tmp_path / "missing"):
        with pytest.raises(UsageError, match="can't be read"):
            RemoteAccess("https://localhost", SANDBOX_TOKEN, ca=str(ca))


# What is given


def sandbox_request(**fields: Any) -> SandboxRequest:
    return SandboxRequest.model_validate_json(json.dumps({**ASKED, **fields}))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"memory": "1025m"}, "limit for memory is 1g, but 1025m was"),
        ({"memory": "2G"}, "limit for memory is 1g, but 2G was"),
        ({"cpus": 1.5}, "limit for cpus is 1, but 1.5 was"),
        ({"pids": 101}, "limit for pids is 100, but 101 was"),
        ({"disk": 3 * 10**9}, "limit for disk is 2 GB, but 3 GB was"),
        ({"environment": {"LD_PRELOAD": "x.so"}}, "accepts no environment variables"),
    ],
)
def test_a_request_beyond_the_operators_limits_is_refused(
    fields: dict[str, Any], says: str
) -> None:
    bounds = ServiceBounds("local", memory="1g", cpus=1.0, pids=100, disk=2 * 10**9)
    bounds.check(sandbox_request())
    with pytest.raises(Refused, match=says):
        bounds.check(sandbox_request(**fields))


@pytest.mark.parametrize("memory", ["", "0", "-1g", "1t", "1 g", "lots"])
def test_an_invalid_memory_size_is_refused(memory: str) -> None:
    with pytest.raises(UsageError, match="not an amount of memory"):
        ServiceBounds("local").check(sandbox_request(memory=memory))


def test_a_client_can_read_the_limits(new_server: NewServer) -> None:
    server = new_server("--max-memory", "1g", "--max-pids", "100")
    with pytest.raises(SandboxError, match="limit for pids is 100, but 1024 was") as refused:
        server.machine(memory="1g").__enter__()
    assert refused.value.next_step == (
        "set `pids` in RESOLVER_SANDBOX_LIMITS to 100 or less, or ask its operator"
    )


@pytest.mark.parametrize(
    ("image", "may"),
    [
        ("ghcr.io/us/app:1", True),
        ("ghcr.io/us.evil/app", False),
        ("app", False),
        ("debian:12", True),
    ],
)
def test_only_listed_images_are_allowed(image: str, may: bool) -> None:
    bounds = ServiceBounds("docker", images=("ghcr.io/us/*", "debian:*"))
    if may:
        bounds.check(sandbox_request(image=image))
    else:
        with pytest.raises(Refused, match="offers no sandbox with the image"):
            bounds.check(sandbox_request(image=image))


def test_a_request_names_every_property_of_the_sandbox_that_clients_decide() -> None:
    operators = {"oci_runtime", "read_only_root"}
    assert {*SandboxRequest.model_fields, *operators} == set(SandboxSpec.model_fields)


@pytest.mark.parametrize(
    ("limit", "kind"),
    [("oci_runtime: runsc", "remote"), ("oci_runtime: runsc", "local"),
     ("read_only_root: true", "remote")],
)  # fmt: skip
def test_a_limit_that_a_runtime_lacks_is_a_usage_error(limit: str, kind: str) -> None:
    settings = load_settings({}, {"RESOLVER_SANDBOX_LIMITS": f"{{{limit}}}"})
    with pytest.raises(UsageError, match=f"{limit[:11]}.*can't be applied in the {kind} runtime"):
        open_runtime(settings, kind, "run", open_host({}), "")


@pytest.mark.parametrize(
    ("remote", "says"),
    [
        ({}, "set RESOLVER_REMOTE to the server's address"),
        ({"RESOLVER_REMOTE": "http://127.0.0.1:1"}, "and RESOLVER_REMOTE_TOKEN"),
        (
            {"RESOLVER_REMOTE": "http://h.example", "RESOLVER_REMOTE_TOKEN": SANDBOX_TOKEN},
            "unencrypted",
        ),
    ],
)
def test_what_is_missing_for_the_remote_runtime_is_named(remote: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError) as wrong:
        open_runtime(load_settings({}, remote), "remote", "run", open_host({}), "")
    text = wrong.value.what + wrong.value.next_step
    assert says in text and SANDBOX_TOKEN not in text


def test_an_image_name_beyond_reason_is_a_usage_error(
    local_sandbox_server: SandboxServer,
) -> None:
    with pytest.raises(UsageError, match="image: String should have at most 500"):
        local_sandbox_server.machine(image="x" * 501)


def test_the_number_of_sandboxes_is_limited(new_server: NewServer) -> None:
    server = new_server("--max-sandboxes", "1")
    with Runtime(server.machine(), 30) as sandbox:
        with pytest.raises(SandboxError, match="all of its 1 sandboxes are in use"):
            server.machine().__enter__()
        assert echo(sandbox) == "there\n"
    with Runtime(server.machine(), 30) as sandbox:
        assert echo(sandbox) == "there\n"


def test_an_idle_sandbox_is_removed(new_server: NewServer) -> None:
    server = new_server("--idle", "1.5")
    with client(server) as ask:
        assert ask.put("/v1/sandboxes/forgotten", json=ASKED).status_code == 200
        assert list(server.folder.glob("sandboxes-*/tmp/resolver-*"))
        until(lambda: not ask.get("/v1/limits").json()["running"])
        assert not list(server.folder.glob("sandboxes-*/tmp/resolver-*"))
        gone = ask.put(
            "/v1/sandboxes/forgotten/streams/some-stream", json={"kind": "wire", "path": ""}
        )
        assert gone.status_code == 404
        assert "1.5 seconds without a request" in gone.json()["what"]


def test_a_quiet_sandbox_in_use_is_not_removed(new_server: NewServer) -> None:
    server = new_server("--idle", "1")
    with Runtime(server.machine(), 30) as sandbox:
        with client(server) as ask:
            assert ask.put("/v1/sandboxes/forgotten", json=ASKED).status_code == 200
            until(lambda: ask.get("/v1/limits").json()["running"] == 1)
        assert echo(sandbox) == "there\n"


def test_a_repeated_request_finds_the_same_sandbox(local_sandbox_server: SandboxServer) -> None:
    with client(local_sandbox_server) as ask:
        path = "/v1/sandboxes/asked-twice"
        first, second = (ask.put(path, json=ASKED) for _ in range(2))
        assert first.status_code == second.status_code == 200
        assert first.json() == second.json()
        assert ask.put(path, json={**ASKED, "run": "other"}).status_code == 409
        assert [ask.delete(path).status_code for _ in range(2)] == [204, 204]
        assert ask.put(path, json=ASKED).status_code == 409


def test_a_broken_archive_is_an_error_and_the_sandbox_lives(
    local_sandbox_server: SandboxServer,
) -> None:
    machine = local_sandbox_server.machine()
    with Runtime(machine, 30) as sandbox:
        broken = (b"no tar at all" * 1000, b"\0" * 100, os.urandom(5_000_000))
        for garbage in broken * 6:  # more often than streams may be open
            with pytest.raises(SandboxError):
                machine.put_archive(sandbox.root, garbage)
        with pytest.raises(SandboxError, match="can't be reached"):
            machine.put_archive("/etc", b"")
        with pytest.raises(SandboxError, match="can't be reached"):
            list(machine.get_archive("/etc/passwd"))
        assert echo(sandbox) == "there\n"


def test_an_abandoned_archive_leaves_nothing_waiting(
    local_sandbox_server: SandboxServer,
) -> None:
    machine = local_sandbox_server.machine()
    with Runtime(machine, 30) as sandbox:
        sandbox.execute(CmdRun(command="head -c 40000000 /dev/zero > zeros"))
        for _ in range(3):
            stream = machine.get_archive(f"{sandbox.root}/zeros")
            assert next(stream)
            del stream
        assert echo(sandbox) == "there\n"
    assert local_sandbox_server.process.poll() is None


# Nonsense


PATHS = st.sampled_from(
    ["/v1/sandboxes/{}", "/v1/sandboxes/{}/streams/abcdefgh", "/v1/limits", "/v1/{}", "/{}"]
)
BODIES = st.one_of(
    st.binary(max_size=300),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from([*ASKED, "kind", "path", "x"]), inner, max_size=6)
        ),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode()),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD"]),
    path=PATHS,
    name=st.text("abc.-_/%\u00e4 0", max_size=12) | st.just("some-sandbox"),
    query=st.sampled_from(["", "?offset=0", "?offset=-1", "?offset=9e9", "?offset=1&last=maybe"]),
    body=BODIES,
)
def test_nonsense_is_refused_and_breaks_nothing(
    local_sandbox_server: SandboxServer, method: str, path: str, name: str, query: str, body: bytes
) -> None:
    target = path.format(quote(name, safe="%"))
    status = raw_status(local_sandbox_server, method, f"{target}{query}", body)
    assert 200 <= status < 500
    assert local_sandbox_server.process.poll() is None


def raw_status(server: SandboxServer, method: str, target: str, body: bytes) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        headers = {"Authorization": f"Bearer {SANDBOX_TOKEN}"}
        connection.request(method, target, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_body_that_is_too_long_is_refused(local_sandbox_server: SandboxServer) -> None:
    with client(local_sandbox_server) as ask:
        answer = ask.put("/v1/sandboxes/abcdefgh", content=b" " * 100_000)
        assert answer.status_code == 422
        assert "at most" in answer.json()["what"]


def test_bytes_out_of_order_are_refused(local_sandbox_server: SandboxServer) -> None:
    with client(local_sandbox_server) as ask:
        assert ask.put("/v1/sandboxes/gap-sandbox", json=ASKED).status_code == 200
        path = "/v1/sandboxes/gap-sandbox/streams/wire-stream"
        assert ask.put(path, json={"kind": "wire"}).status_code == 200
        assert ask.put(path, json={"kind": "get", "path": "/"}).status_code == 409
        assert ask.post(path, params={"offset": 5}, content=b"x").status_code == 409
        assert ask.get(path, params={"offset": 5}).status_code == 409
        long = ask.post(path, params={"offset": 0}, content=b" " * (5 << 20))
        assert long.status_code == 422
        assert ask.delete(path).status_code == 204
        assert ask.delete(path).status_code == 204
        assert ask.get(path, params={"offset": 0}).status_code == 404
        assert ask.delete("/v1/sandboxes/gap-sandbox").status_code == 204


# How it ends


def containers(engine: docker.DockerClient, server: str) -> int:
    found = engine.containers.list(all=True, ignore_removed=True, filters={"label": RUN_LABEL})
    return sum(c.labels[RUN_LABEL].startswith(f"served.{server}.") for c in found)


def until_gone(engine: docker.DockerClient, server: str) -> bool:
    return becomes_true(lambda: containers(engine, server) == 0, 60)


@pytest.mark.engine
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_container_is_left_by_a_server_that_ends(
    engine: docker.DockerClient,
    new_server: NewServer,
    busybox_image: str,
    number: signal.Signals,
) -> None:
    name = f"ends-by-{number.value}-{os.getpid()}"
    server = new_server("--runtime", "docker", "--name", name)
    with client(server) as ask:
        request = {**ASKED, "image": busybox_image}
        while (answer := ask.put("/v1/sandboxes/not-connected", json=request)).status_code == 202:
            continue
        assert answer.status_code == 200
    sandbox = Runtime(server.machine(image=busybox_image, memory="512m"), 30)
    with sandbox:
        assert echo(sandbox) == "there\n"
        assert containers(engine, name) == 2
        server.end(number)
        if number == signal.SIGTERM:
            assert until_gone(engine, name)
        # A client waits a minute for a server that is not there.
        server.start()
        if number == signal.SIGKILL:
            assert "that an earlier server left" in server.log
        with pytest.raises(SandboxError, match="the sandbox was lost"):
            echo(sandbox)
        assert until_gone(engine, name)
    assert until_gone(engine, name)


def test_the_server_says_how_it_ended(new_server: NewServer) -> None:
    server = new_server()
    assert server.end(signal.SIGTERM) == 0
    assert "stopped by SIGTERM" in server.log
    server.check_log()


def test_two_servers_of_one_name_do_not_run_at_once(new_server: NewServer) -> None:
    server = new_server("--name", "the-same")
    second = SandboxServer(server.folder, "--runtime", "local", "--name", "the-same")
    done = subprocess.run(
        [*server.process.args[:2], "serve", "--port", "0", "--name", "the-same"],  # type: ignore[index]
        env=second.environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "another server is already using" in done.stderr


# The client's side of the settings


@pytest.mark.parametrize(
    ("token", "code", "says"),
    [
        (SANDBOX_TOKEN, 0, r"ok       remote runtime: local, \d of 8 sandboxes are in use"),
        ("wrong" * 5, 1, "does not accept the token"),
        ("", 1, "set RESOLVER_REMOTE to the server's address, and RESOLVER_REMOTE_TOKEN"),
    ],
)
def test_doctor_reports_a_reachable_server(
    local_sandbox_server: SandboxServer,
    capsys: pytest.CaptureFixture[str],
    token: str,
    code: int,
    says: str,
) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "LLM_MODEL": "openai/x",
        "RESOLVER_REMOTE": local_sandbox_server.url,
        "RESOLVER_REMOTE_TOKEN": token,
    }
    assert run(["doctor", "--runtime", "remote"], environment) == code
    shown = capsys.readouterr().out
    assert re.search(says, shown), shown
    assert not token or token not in shown


def test_doctor_reports_an_unreachable_server(capsys: pytest.CaptureFixture[str]) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "LLM_MODEL": "openai/x",
        "RESOLVER_REMOTE": "http://127.0.0.1:1",
        "RESOLVER_REMOTE_TOKEN": SANDBOX_TOKEN,
    }
    assert run(["doctor", "--runtime", "remote"], environment) == 1
    shown = capsys.readouterr().out
    assert "can't be reached" in shown
    assert "Connection refused" in shown
    assert "check that it runs and RESOLVER_REMOTE" in shown
