"""The secrets that the tests plant, and the search for any form of them in what a run publishes."""

import base64
import json
import urllib.parse
from collections.abc import Iterable, Iterator
from pathlib import Path

CANARIES = {
    "LLM_API_KEY": "sk-canary-5f3a9c1e7b2d4608a1c3e5f7d9b0c2e4",
    # The form of installation tokens: a prefix, then a signed token with dots.
    "GITHUB_TOKEN": "ghs_eyJhbGciOiJSUzI1NiJ9.canary-b81d0e6f4a2c97531e0d8f6b5a4c3d2e."
    + "Qm9vQmFyQmF6UXV4" * 28,
    "OPENAI_API_KEY": "sk-proj-canary-0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a",
    "ANTHROPIC_API_KEY": "sk-ant-canary-77e6d5c4b3a2918f7e6d5c4b3a2918f7",
    "GITHUB_WEBHOOK_SECRET": "hook-canary-1a2b3c4d5e6f708192a3b4c5d6e7f809",
    "DEPLOY_TOKEN": "deploy/canary-e1d2c3b4a5968778695a4b3c2d1e0f1a+/=&%",
    "DATABASE_PASSWORD": 'pw"canary-c0ffee00c0ffee11c0ffee22c0ffee33\\',
}
"""By the variable that holds each. All are found in the sandbox by `PATTERN`."""

PATTERN = "canar[y]-[0-9a-f]{24}"
"""An extended regular expression that matches each canary and not itself."""

PIECE = 20
"""A piece of so many characters of a canary is a leak as well."""


def forms(secret: str) -> Iterator[bytes]:
    """The secret as it is and as it is usually written elsewhere."""
    data = secret.encode()
    yield data
    yield json.dumps(secret)[1:-1].encode()
    yield data.hex().encode()
    yield urllib.parse.quote(secret, safe="").encode()
    yield from base64_forms(data)


def base64_forms(data: bytes) -> Iterator[bytes]:
    """Return the base64 text of `data` at each of the three offsets, without shared edges."""
    for offset in range(3):
        whole = base64.b64encode(bytes(offset) + data)
        yield whole[4 if offset else 0 : -4]


def leaks(data: bytes, secrets: Iterable[str] = tuple(CANARIES.values())) -> list[bytes]:
    """Pieces of the secrets that are in `data`, in any form."""
    found = []
    for secret in secrets:
        for form in forms(secret):
            starts = range(len(form) - PIECE + 1)
            found += [p for s in starts if (p := form[s : s + PIECE]) in data][:1]
    return found


def files_below(folder: Path) -> bytes:
    """All regular files, one after the other, with their names."""
    found = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    return b"".join(str(p).encode() + b"\n" + p.read_bytes() for p in found)
