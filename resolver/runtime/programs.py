"""A program in the sandbox whose input and output are held here: what an MCP server that belongs to
the repository is talked to through.
"""

import base64
import binascii
from contextlib import suppress
from typing import Final, TypedDict

from resolver.errors import SandboxError
from resolver.runtime.client import WireClient
from resolver.sandbox import wire

READ_SECONDS: Final = 20.0
"""How long one request for output waits; then comes the next."""

GRACE_SECONDS: Final = 300.0
"""What a busy sandbox gets on top of it: an answer that is missing ends the sandbox."""


class EmptyResult(TypedDict):
    """Nothing but that it was done."""


class Program:
    """One program. `read` and `write` may be called from two threads, `close` from any."""

    def __init__(self, client: WireClient, number: int) -> None:
        self._client = client
        self._number = number
        self._words = ""

    def read(self) -> bytes:
        """Its next output; b"" when it has ended, or the sandbox has."""
        params = {"program": self._number, "timeout": READ_SECONDS}
        seconds = READ_SECONDS + GRACE_SECONDS
        try:
            while True:
                got = self._client.call("read_program", params, wire.ProgramOutput, seconds)
                self._words = got["words"]
                data = base64.b64decode(got["data"], validate=True)
                if data or got["ended"]:
                    return data
        except (SandboxError, wire.WireError, binascii.Error):
            return b""

    def write(self, data: bytes) -> None:
        """Give it input. Raises SandboxError when it does not take it."""
        for start in range(0, len(data), wire.PROGRAM_CHUNK):
            piece = base64.b64encode(data[start : start + wire.PROGRAM_CHUNK]).decode()
            params = {"program": self._number, "data": piece}
            try:
                self._client.call("write_program", params, EmptyResult, GRACE_SECONDS)
            except wire.WireError as error:
                raise SandboxError(error.message, "see what it wrote to standard error") from error

    def close(self) -> None:
        """End it with all that it has started; a waiting `read` returns b"". May be repeated."""
        with suppress(SandboxError, wire.WireError):
            params = {"program": self._number}
            self._client.call("end_program", params, EmptyResult, GRACE_SECONDS)

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error."""
        return self._words
