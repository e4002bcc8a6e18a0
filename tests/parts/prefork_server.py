"""A process that has imported `resolver` once and forks for each command line that a test starts.

Importing the package and litellm takes seconds of processor time, and hundreds of tests start the
real command line. `python -m tests.parts.prefork_server SOCKET PID FD` listens on SOCKET until the
process PID has ended, and closes the pipe FD as soon as it listens. For each connection it forks;
the child takes over the client's arguments, environment, folder, and standard streams, and calls
the entry point of the `resolver` script, or that of the process in which `resolver serve` executes
its runs. The client (`prefork_client.py`) stands for the child: it
forwards signals, ends as the child ended, and when it is killed, the child is killed.
"""

import array
import gc
import importlib
import io
import json
import logging
import marshal
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel

from resolver.config import templates
from resolver.github.comments import templates as comment_templates
from resolver.trace import markdown
from tests.parts import killing_moments

BUILT = ("litellm.types.utils", "openai.types.chat")
"""Beginnings of the modules whose models are built before the first fork."""

CHECK_SECONDS = 1.0
"""How often it looks whether the process that it serves is still there."""

REQUEST_SECONDS = 10.0
"""How long a client may take to send its request: all others wait for it."""


def load() -> None:
    """Import what a run imports, and start no thread: a fork would not have it."""

    from resolver.cli.main import COMMANDS
    from resolver.llm import library

    for command in COMMANDS:
        importlib.import_module(f"resolver.cli.{command}")
    library.litellm()
    for name in imported_by_a_call():
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    library._load_litellm.cache_clear()  # it is configured again in each child
    for name in templates._environment().list_templates(extensions=["j2"]):
        if name.startswith("comments/"):
            environment = comment_templates._environment()
        elif name.startswith("trace/") and name.endswith(".md.j2"):
            environment = markdown._environment()
        else:
            environment = templates._environment()
        environment.get_template(name)
    build_models()


def build_models() -> None:
    """Build the models of a call of litellm, which pydantic leaves to their first use."""
    pending = BaseModel.__subclasses__()
    while pending:
        model = pending.pop()
        pending += model.__subclasses__()
        if model.__module__.startswith(BUILT) and not model.__pydantic_complete__:
            model.model_rebuild(raise_errors=False)


def imported_by_a_call() -> list[str]:
    """The modules that litellm imports at its first call, found in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        from resolver.llm.library import litellm

        before = set(sys.modules)
        messages = [{"role": "user", "content": "hello"}]
        litellm().completion("openai/scripted", messages, api_key="x", mock_response="ready")
        names = [name for name in sys.modules if name not in before]
        with open(writing, "w") as file:
            json.dump(names, file)
        os._exit(0)
    os.close(writing)
    with open(reading) as file:
        found = file.read()
    os.waitpid(child, 0)
    return list(json.loads(found)) if found else []


def serve(path: str, owner: int, starting: int) -> None:
    listening = socket.socket(socket.AF_UNIX)
    made = Path(f"{path}.new")
    listening.bind(str(made))
    listening.listen(128)
    made.rename(path)  # a client finds it only when it listens
    os.close(starting)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    clients: dict[socket.socket, int] = {}
    while Path(f"/proc/{owner}").exists():
        ready, _, _ = select.select([listening, reading, *clients], [], [], CHECK_SECONDS)
        for source in ready:
            if source is listening:
                accept(listening, clients)
            elif source is reading:
                os.read(reading, 4096)
            else:
                forward(source, clients)
        reap(clients)


def accept(listening: socket.socket, clients: dict[socket.socket, int]) -> None:
    connection, _ = listening.accept()
    try:
        request, streams = receive(connection)
    except (OSError, EOFError, ValueError, TypeError) as error:
        print(f"a client was lost before its request was read: {error!r}", flush=True)
        connection.close()
        return
    child = os.fork()
    if child == 0:
        for other in (listening, connection, *clients):
            other.close()
        become(request, streams)
    for stream in streams:
        os.close(stream)
    clients[connection] = child


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The client's request, marshalled behind its length, and its three standard streams."""
    connection.settimeout(REQUEST_SECONDS)
    descriptors = array.array("i")
    try:
        return receive_request(connection, descriptors), list(descriptors)
    except BaseException:
        for stream in descriptors:
            os.close(stream)
        raise


def receive_request(connection: socket.socket, descriptors: "array.array[int]") -> dict[str, Any]:
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        part, ancillary, _, _ = connection.recvmsg(1 << 20, socket.CMSG_SPACE(3 * 4))
        for _, _, passed in ancillary:
            descriptors.frombytes(passed)
        if not part:
            raise EOFError(f"{len(data)} bytes of a request")
        data += part
    connection.settimeout(None)
    request: dict[str, Any] = marshal.loads(data[4:])
    return request


def become(request: dict[str, Any], streams: list[int]) -> NoReturn:
    """Go on as the process that the client's caller believes it has started."""
    gc.enable()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    os.chdir(request["folder"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["environment"])
    tempfile.tempdir = None  # it was chosen by the server's variables
    sys.argv = request["arguments"]
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = text_stream(1, "surrogateescape", os.isatty(1))
    sys.stderr = text_stream(2, "backslashreplace", True)
    from resolver.cli.main import main

    code = 1
    try:
        killing_moments.arm(request.get("moment", {}))
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - the process ends with it
        traceback.print_exc()
    finally:
        # Without the shutdown of the interpreter, which would be that of the server.
        logging.shutdown()
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def text_stream(descriptor: int, errors: str, line_buffering: bool) -> io.TextIOWrapper:
    binary = os.fdopen(descriptor, "wb", closefd=False)
    return io.TextIOWrapper(binary, encoding="utf-8", errors=errors, line_buffering=line_buffering)


def forward(connection: socket.socket, clients: dict[socket.socket, int]) -> None:
    """Pass a signal on. A client that is gone was killed."""
    try:
        data = connection.recv(64)
    except OSError:
        data = b""
    for number in data or [signal.SIGKILL]:
        os.kill(clients[connection], number)
    if not data:
        os.waitpid(clients.pop(connection), 0)
        connection.close()


def reap(clients: dict[socket.socket, int]) -> None:
    for connection, child in list(clients.items()):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            del clients[connection]
            with suppress(OSError):  # the client was killed meanwhile
                connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
            connection.close()


if __name__ == "__main__":
    # What is imported here stays: it is not searched for garbage, neither here nor in the children,
    # which would copy all of it for that.
    gc.disable()
    load()
    gc.freeze()
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    shutil.rmtree(Path(sys.argv[1]).parent, ignore_errors=True)
