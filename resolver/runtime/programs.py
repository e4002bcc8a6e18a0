"""A program in the sandbox whose input and output are connected to the host.

It is used to talk to an MCP server that belongs to the repository.
"""

import base64
import binascii
from contextlib import suppress
from typing import Final, TypedDict

from resolver.errors import SandboxError
from resolver.runtime.client import WireClient
from resolver.sandbox import wire

READ_SECONDS: Final = 20.0
"""Time that one request for output waits before the next one is sent."""

GRACE_SECONDS: Final = 300.0
"""Time added for a busy sandbox, because a missing answer ends the sandbox."""


class EmptyResult(TypedDict):
    """A result without content: the request was executed."""


class Program:
    """One program. `read` and `write` may be called from two threads, `close` from any thread."""

    def __init__(self, client: WireClient, number: int) -> None:
        self._client = client
        self._number = number
        self._words = ""

    def read(self) -> bytes:
        """Return the next output; b"" if the program or the sandbox has ended."""
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
        """Write to the program's input. Raises SandboxError if it does not accept the data."""
        for start in range(0, len(data), wire.PROGRAM_CHUNK):
            piece = base64.b64encode(data[start : start + wire.PROGRAM_CHUNK]).decode()
            params = {"program": self._number, "data": piece}
            try:
                self._client.call("write_program", params, EmptyResult, GRACE_SECONDS)
            except wire.WireError as error:
                raise SandboxError(error.message, "see what it wrote to standard error") from error

    def close(self) -> None:
        """End the program and everything it has started; a waiting `read` returns b"" then.

        May be called more than once.
        """
        with suppress(SandboxError, wire.WireError):
            params = {"program": self._number}
            self._client.call("end_program", params, EmptyResult, GRACE_SECONDS)

    @property
    def last_words(self) -> str:
        """The end of what the program wrote to standard error."""
        return self._words
