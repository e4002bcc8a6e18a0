"""`Killer` runs `resolver` command lines and kills each (SIGKILL) at a given moment.

Each runs in a fork of `prefork_server.py`, which arms the moment (`killing_moments.py`) before it
calls the entry point.
"""

import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from tests.parts import prefork_client
from tests.parts.prefork import server_folder
from tests.parts.runs import INSTALLED_RESOLVER


class Killer:
    """Starts the command lines. `environment` is theirs."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self._log = folder / "killer.log"

    def run(self, *args: str | Path, **moment: str) -> int:
        """Exit code of a command line, or the negative signal that ended it.

        moment: kind=NAME for the first event of that kind; or audit=NAME and word=TEXT.
        """
        resolver = str(INSTALLED_RESOLVER)
        request = {
            "arguments": [resolver, *map(str, args)],
            "environment": dict(self.environment),
            "folder": str(Path.cwd()),
            "umask": 0o077,
            "moment": moment,
        }
        folder, owner = server_folder()
        with (
            closing(prefork_client.connect(str(folder), resolver, owner)) as connection,
            open(os.devnull, "rb") as nothing,
            self._log.open("ab") as log,
        ):
            streams = [nothing.fileno(), log.fileno(), log.fileno()]
            prefork_client.send_request(connection, request, streams)
            return int(connection.recv(16) or b"1")

    @property
    def printed(self) -> str:
        """The output of all command lines."""
        return self._log.read_text() if self._log.exists() else ""
