"""The commands that docs/how-to/operating.md gives for backups, with a request in the queue."""

import re
import shutil
import sqlite3
from pathlib import Path

from sqlalchemy import URL

from resolver.entrypoints.webhook.request_queue import RequestQueue
from resolver.storage.database import parse_database_url
from tests.webhook.test_request_queue import run

DOCS = Path(__file__).parents[2] / "docs/how-to/operating.md"


def documented(program: str) -> list[str]:
    """The words of the documented command that begins with `program`."""
    [line] = re.findall(rf"^    ({program} .*)$", DOCS.read_text(), re.M)
    return str(line).split()


def store_request(url: URL) -> None:
    queue = RequestQueue(url)
    assert queue.add(run(7))
    queue.close()


def restored_requests(url: URL) -> list[int | None]:
    """Claim what is in the restored queue; a redelivery has no effect there."""
    queue = RequestQueue(url)
    try:
        assert not queue.add(run(7))
        return [request.trigger.number for request in queue.unfinished() if request.trigger]
    finally:
        queue.close()


def test_a_copy_of_sqlite_has_the_queue(tmp_path: Path) -> None:
    url = parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
    store_request(url)
    words = documented("sqlite3")
    assert words[:2] == ["sqlite3", "resolver.db"]
    # The statement of the command, which needs no `sqlite3` program here.
    statement = " ".join(words[2:]).strip('"').replace("backup.db", str(tmp_path / "backup.db"))
    connection = sqlite3.connect(tmp_path / "resolver.db")
    connection.execute(statement)
    connection.close()
    for name in ("resolver.db", "resolver.db-wal", "resolver.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    shutil.move(tmp_path / "backup.db", tmp_path / "resolver.db")
    assert restored_requests(url) == [7]
