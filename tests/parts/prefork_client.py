"""Stands for a `resolver` process: the command line runs in a fork of `prefork_server.py`.

Started as `python -IS prefork_client.py FOLDER RESOLVER OWNER ARGUMENTS...`, with the standard
library alone, because its own start is what it is there to save. Where a fork can't stand for a
process (a session or a variable that Python or OpenSSL read when they start), it becomes RESOLVER.
"""

import array
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys

UNLIKE = ("PYTHON", "SSL_", "REQUESTS_CA", "CURL_CA", "LITELLM_", "MALLOC_")
"""Beginnings of variables that are read before `main` is called."""


def main() -> None:
    folder, resolver, owner, *arguments = sys.argv[1:]
    variables = [name.upper() for name in os.environ]
    plain = not any(name.startswith(UNLIKE) or name.endswith("_PROXY") for name in variables)
    if os.getpid() == os.getsid(0) or not plain:
        os.execv(resolver, [resolver, *arguments])
    connection = connect(folder, resolver, int(owner))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda number, _: connection.send(bytes([number])))
    umask = os.umask(0o077)
    os.umask(umask)
    request = {
        "arguments": [resolver, *arguments],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "umask": umask,
    }
    streams = array.array("i", [0, 1, 2])
    data = json.dumps(request).encode() + b"\n"
    sent = connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    connection.sendall(data[sent:])
    for stream in streams:
        os.close(stream)  # only the fork holds the ends of its pipes
    end(int(connection.recv(16) or b"1"))


def connect(folder: str, resolver: str, owner: int) -> socket.socket:
    """A connection to the server, which the first client starts."""
    path = os.path.join(folder, "socket")
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            start(folder, resolver, owner)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


def start(folder: str, resolver: str, owner: int) -> None:
    """Start the server, and return when it listens or has ended."""
    reading, writing = os.pipe()
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    python = os.path.join(os.path.dirname(resolver), "python")
    with open(os.path.join(folder, "log"), "ab") as log:
        subprocess.Popen(
            [
                python,
                "-m",
                "tests.parts.prefork_server",
                os.path.join(folder, "socket"),
                str(owner),
                str(writing),
            ],
            pass_fds=[writing],
            cwd=root,
            env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)


def end(code: int) -> None:
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
