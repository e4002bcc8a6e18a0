"""The remote runtime over a network that cuts connections at any byte: nothing is lost, nothing is
done twice."""

import hashlib
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from resolver.errors import SandboxError
from resolver.events.actions import CmdRun, IPythonRunCell
from resolver.events.observations import CmdOutput
from resolver.runtime.base import SandboxSpec
from resolver.runtime.client import wrap_file
from resolver.runtime.remote.access import RemoteAccess
from resolver.runtime.remote.machine import RemoteMachine
from resolver.runtime.runtime import Runtime
from tests.parts.forwarding import Forwarder, forwarding
from tests.parts.sandbox_server import SANDBOX_TOKEN, SandboxServer


@pytest.fixture
def hostile(local_sandbox_server: SandboxServer) -> Iterator[Forwarder]:
    """A way to the server that is well until it gets a cutter."""
    with forwarding(("127.0.0.1", local_sandbox_server.port)) as forwarder:
        yield forwarder


def access_by(forwarder: Forwarder, patience: float = 60.0) -> RemoteAccess:
    url = f"http://127.0.0.1:{forwarder.port}"
    return RemoteAccess(url, SANDBOX_TOKEN, patience=patience)


def sandbox_by(forwarder: Forwarder, patience: float = 60.0) -> Runtime:
    machine = RemoteMachine(SandboxSpec(image="", run="cuts"), access_by(forwarder, patience))
    return Runtime(machine, command_timeout=30)


def run(sandbox: Runtime, command: str) -> str:
    found = sandbox.execute(CmdRun(command=command))
    assert isinstance(found, CmdOutput), found
    assert found.exit_code == 0, found
    return found.content


def test_two_hundred_actions_are_each_done_exactly_once(hostile: Forwarder) -> None:
    chance = random.Random(2)
    # From in the middle of a request's head to several answers later.
    hostile.cutter = lambda: chance.choice((chance.randint(1, 900), chance.randint(1, 6_000)))
    with sandbox_by(hostile) as sandbox:
        for number in range(200):
            result = run(
                sandbox, f"echo {number} >> done; echo said {number}; printf %0200d {number}"
            )
            assert result.startswith(f"said {number}\n")
        done = run(sandbox, "cat done")
        hostile.cutter = lambda: None
    assert done.split() == [str(number) for number in range(200)]
    assert hostile.cuts > 50


def test_archives_survive_broken_connections(hostile: Forwarder, tmp_path: Path) -> None:
    chance = random.Random(3)
    content = chance.randbytes(3_000_000)
    hostile.cutter = lambda: chance.randint(1, 500_000)
    with sandbox_by(hostile) as sandbox:
        chunks = (content[at : at + 100_000] for at in range(0, len(content), 100_000))
        sandbox._machine.put_archive(sandbox.root, wrap_file("in", chunks))
        code = "import hashlib; hashlib.sha256(open('in', 'rb').read()).hexdigest()"
        result = sandbox.execute(IPythonRunCell(code=code))
        assert hashlib.sha256(content).hexdigest() in result.content
        sandbox.fetch(f"{sandbox.root}/in", tmp_path / "out", 10_000_000)
        hostile.cutter = lambda: None
    assert (tmp_path / "out").read_bytes() == content
    assert hostile.cuts > 10


def test_huge_output_survives_broken_connections(hostile: Forwarder) -> None:
    chance = random.Random(4)
    hostile.cutter = lambda: chance.randint(500, 20_000)
    with sandbox_by(hostile) as sandbox:
        for _ in range(10):
            text = run(sandbox, "for ((i = 0; i < 2000; i++)); do echo line $i; done")
            assert text.splitlines() == [f"line {i}" for i in range(2000)]
        hostile.cutter = lambda: None


def test_a_connection_broken_during_a_command_is_restored(hostile: Forwarder) -> None:
    with sandbox_by(hostile) as sandbox:
        timer = threading.Timer(0.3, hostile.cut_all)
        timer.start()
        assert run(sandbox, "sleep 0.8; echo there") == "there\n"
        timer.join()
        assert hostile.cuts > 0


def test_a_temporary_network_failure_is_waited_for(hostile: Forwarder) -> None:
    with sandbox_by(hostile) as sandbox:
        hostile.cutter = lambda: 0
        hostile.cut_all()

        def mend() -> None:
            hostile.cutter = lambda: None

        timer = threading.Timer(1.5, mend)
        timer.start()
        assert run(sandbox, "echo there") == "there\n"
        timer.join()


def test_a_permanent_network_failure_is_a_clear_error(hostile: Forwarder) -> None:
    with sandbox_by(hostile, patience=1.0) as sandbox:
        hostile.cutter = lambda: 0
        hostile.cut_all()
        with pytest.raises(SandboxError, match="the sandbox was lost") as lost:
            run(sandbox, "true")
        assert "can't be reached" in lost.value.what
        assert lost.value.next_step
        hostile.cutter = lambda: None


@pytest.mark.deep
def test_closing_does_not_wait_for_the_network(hostile: Forwarder) -> None:
    with sandbox_by(hostile) as sandbox:
        hostile.cutter = lambda: 0
        hostile.cut_all()
        time.sleep(0.3)
        timer = threading.Timer(0.2, lambda: setattr(hostile, "cutter", lambda: None))
        timer.start()
        started = time.monotonic()
        sandbox.close()
        assert time.monotonic() - started < 8
        timer.join()


def test_concurrent_senders_are_all_received(hostile: Forwarder) -> None:
    chance = random.Random(5)
    hostile.cutter = lambda: chance.randint(1, 3_000)
    with sandbox_by(hostile) as sandbox:
        answers: list[str] = []
        threads = [
            threading.Thread(target=lambda n=n: answers.append(run(sandbox, f"echo {n}")))
            for n in range(30)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        hostile.cutter = lambda: None
    assert sorted(answers) == sorted(f"{n}\n" for n in range(30))


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[SandboxServer]:
    """A server of the test's own, to be killed."""
    server = SandboxServer(tmp_path, "--runtime", "local").start()
    yield server
    server.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_restarted_server_reports_the_lost_sandbox(
    own_server: SandboxServer, number: signal.Signals
) -> None:
    with forwarding(("127.0.0.1", own_server.port)) as forwarder, sandbox_by(forwarder) as sandbox:
        run(sandbox, "true")
        own_server.end(number)
        own_server.start()
        with pytest.raises(SandboxError) as lost:
            run(sandbox, "true")
    was_told = number == signal.SIGTERM
    says = "the sandbox server was stopped" if was_told else "the server has no such sandbox"
    assert says in lost.value.what
    assert not list(own_server.folder.glob("sandboxes-*/tmp/resolver-*"))
