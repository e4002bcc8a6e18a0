"""A cache of limited size, for what the threads of a server remember."""

import threading
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Values by key: those that were put last, `limit` at most. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: dict[Key, Value] = {}
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """Return the value of a key; None if there is none."""
        with self._lock:
            return self._values.get(key)

    def put(self, key: Key, value: Value) -> bool:
        """Set the value of a key, and drop what was put first if there are too many. Return False
        if the key had a value."""
        with self._lock:
            # A dict keeps the order of insertions, so the value goes to the end.
            is_new = self._values.pop(key, None) is None
            self._values[key] = value
            if len(self._values) > self._limit:
                del self._values[next(iter(self._values))]
        return is_new

    def pop(self, key: Key) -> Value | None:
        """Remove a key and return its value; None if there is none."""
        with self._lock:
            return self._values.pop(key, None)

    def clear(self) -> None:
        """Remove all keys."""
        with self._lock:
            self._values.clear()
