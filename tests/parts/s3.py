"""An S3-compatible server (moto) with one empty bucket."""

import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

BUCKET = "runs"


@dataclass(frozen=True)
class S3Server:
    """The server. environment: the variables of a client."""

    environment: dict[str, str]


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One server for all tests; each takes a prefix of its own."""
    # a second of import time, which only these tests need
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    with urllib.request.urlopen(urllib.request.Request(f"{address}/{BUCKET}", method="PUT")):
        pass
    yield S3Server(
        {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "s3-canary-5b1e90c2d7",
        }
    )
    server.stop()
