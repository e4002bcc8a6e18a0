"""Folders that are nested deeper than a path may be long (PATH_MAX in path_resolution(7))."""

import os
from pathlib import Path

NAME = "d" * 200


def make_nested_folders(root: Path, depth: int, content: bytes = b"x\n") -> None:
    """Create `depth` folders named NAME, each in the one before, and a file in the innermost."""
    folder = os.open(root, os.O_RDONLY)
    try:
        for _ in range(depth):
            os.mkdir(NAME, dir_fd=folder)
            inner = os.open(NAME, os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = inner
        file = os.open("file", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=folder)
        os.write(file, content)
        os.close(file)
    finally:
        os.close(folder)
