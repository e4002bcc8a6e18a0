"""An S3-compatible server (s3rver, from npm), with its objects in a temporary folder.

It knows one access key and refuses others, but does not verify the signatures made with it.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.parts.npm import NpmPackages, install_packages
from tests.parts.waiting import until

PACKAGES = Path(__file__).parent / "s3_packages"
ACCESS_KEY = "S3RVER"
BUCKET = "runs"


@dataclass
class S3Server:
    """A server on a port that it keeps when it is started again."""

    packages: NpmPackages
    folder: Path
    port: int = 0
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a client."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": "s3-canary-5b1e90c2d7",
        }

    def start(self) -> None:
        """Start it, with the bucket `BUCKET`."""
        script = self.packages.modules / "s3rver/bin/s3rver.js"
        log = self.folder / "log"
        options = ["--directory", str(self.folder / "buckets"), "--address", "127.0.0.1"]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [self.packages.node, str(script), *options, "--port", str(self.port),
                 "--configure-bucket", BUCKET],
                stdout=output,
            )  # fmt: skip
        prefix = "S3rver listening on 127.0.0.1:"
        until(lambda: prefix in log.read_text() and log.read_text().endswith("\n"))
        self.port = int(log.read_text().rpartition(prefix)[2])

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """The time in which it is gone."""
        self.stop()
        try:
            yield
        finally:
            self.start()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One server for all tests; each takes a prefix of its own."""
    folder = tmp_path_factory.mktemp("s3")
    (folder / "buckets").mkdir()
    server = S3Server(install_packages(PACKAGES, "s3"), folder)
    server.start()
    yield server
    server.stop()
