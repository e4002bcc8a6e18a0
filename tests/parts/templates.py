"""Folders that are built once and copied for each test: a copy costs less than the programs that
build it, which for a repository are a dozen starts of git."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


class Templates:
    """The folders built so far, by the function that builds them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._built: dict[Callable[[Path], Any], tuple[Path, Any]] = {}

    def copy(self, build: Callable[[Path], T], to: Path) -> tuple[Path, T]:
        """Copy the folder that `build` fills into the empty folder `to`.

        Returns the template's own folder and what `build` returned.
        """
        if build not in self._built:
            folder = self._root / f"{len(self._built)}"
            folder.mkdir()
            self._built[build] = (folder, build(folder))
        folder, result = self._built[build]
        # Keeps what a copy in Python loses: times, and hard links between two names of one file.
        subprocess.run(["cp", "-a", f"{folder}/.", to], check=True)
        return folder, result


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    return Templates(tmp_path_factory.mktemp("templates"))
