"""Keeps large files of runs outside of the database."""

from typing import Protocol


class BlobStore(Protocol):
    """A store of files by key. Methods raise DatabaseError if it can't be used."""

    def put(self, key: str, data: bytes) -> None:
        """Store the data durably; earlier data of that key is replaced."""
        ...

    def get(self, key: str, limit: int) -> bytes:
        """Return the data. Raises DatabaseError if there is none or it has more than `limit`
        bytes."""
        ...

    def remove(self, prefix: str) -> None:
        """Remove all files whose keys begin with `prefix`, if there are any."""
        ...
