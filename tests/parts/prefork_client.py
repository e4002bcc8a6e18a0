"""Stands for a `resolver` process: the command line runs in a fork of `prefork_server.py`.

Started as `python -IS prefork_client.py FOLDER RESOLVER OWNER ARGUMENTS...`, with the standard
library alone, because its own start is what it is there to save. Where a fork can't stand for a
process (a session or a variable that Python or OpenSSL read when they start), it becomes RESOLVER.
"""

# Only modules that import no others: `signal`, `socket` and `json` would double the time of its
# start.
import _signal
import _socket
import array
import fcntl
import marshal
import os
import sys

UNLIKE = ("PYTHON", "SSL_", "REQUESTS_CA", "CURL_CA", "LITELLM_", "MALLOC_")
"""Beginnings of variables that are read before `main` is called."""


def main() -> None:
    folder, resolver, owner, *arguments = sys.argv[1:]
    variables = [name.upper() for name in os.environ]
    plain = not any(name.startswith(UNLIKE) for name in variables)
    if os.getpid() == os.getsid(0) or not plain:
        if arguments[:1] == ["-m"]:
            resolver = os.path.join(os.path.dirname(resolver), "python")
        os.execv(resolver, [resolver, *arguments])
    connection = connect(folder, resolver, int(owner))
    umask = os.umask(0o077)
    os.umask(umask)
    request = {
        "arguments": [resolver, *arguments],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "umask": umask,
    }
    send_request(connection, request, [0, 1, 2])
    # Not earlier: a signal's number between the parts of a request would be read as one of them.
    for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGQUIT):
        _signal.signal(number, lambda number, _: connection.send(bytes([number])))
    for stream in range(3):
        os.close(stream)  # only the fork holds the ends of its pipes
    end(int(connection.recv(16) or b"1"))


def send_request(
    connection: _socket.socket, request: dict[str, object], streams: list[int]
) -> None:
    """Send a request as the server's `receive` reads it; streams: the fork's standard streams."""
    descriptors = array.array("i", streams)
    body = marshal.dumps(request)
    data = len(body).to_bytes(4, "big") + body
    sent = connection.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
    connection.sendall(data[sent:])


def connect(folder: str, resolver: str, owner: int) -> _socket.socket:
    """A connection to the server, which the first client starts, and the first one after its end
    starts again."""
    path = os.path.join(folder, "socket")
    connection = _socket.socket(_socket.AF_UNIX)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            start(folder, resolver, owner)
            connection.connect(path)
    return connection


def start(folder: str, resolver: str, owner: int) -> None:
    """Start the server and wait until it listens, which it says by closing a pipe."""
    import subprocess

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    python = os.path.join(os.path.dirname(resolver), "python")
    reading, writing = os.pipe()
    path = os.path.join(folder, "socket")
    with open(os.path.join(folder, "log"), "ab") as log:
        server = subprocess.Popen(
            [python, "-m", "tests.parts.prefork_server", path, str(owner), str(writing)],
            cwd=root,
            env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(writing,),
        )
    server.returncode = 0  # nobody waits for it: it ends after the process that it serves
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)


def end(code: int) -> None:
    if code < 0:
        _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
