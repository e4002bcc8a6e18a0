"""Small files of a repository's default branch over the API: for a word about them, without a
clone.
"""

from collections.abc import Iterator

import github
from github.ContentFile import ContentFile
from github.Repository import Repository

LARGEST = 64_000
"""Bytes of one file."""


def markdown_files(repository: Repository, folder: str, most: int) -> dict[str, bytes]:
    """The markdown files right in a folder, and the SKILL.md of each folder in it, by path.

    most: so many are read, one request each. Empty where there is no such folder.
    """
    found: dict[str, bytes] = {}
    for entry in _listed(repository, folder):
        if len(found) == most:
            break
        file = _one(repository, f"{entry.path}/SKILL.md") if entry.type == "dir" else entry
        if file is None or file.type != "file" or not file.path.lower().endswith(".md"):
            continue
        if file.size <= LARGEST:
            found[file.path] = file.decoded_content
    return found


def _listed(repository: Repository, folder: str) -> Iterator[ContentFile]:
    try:
        listed = repository.get_contents(folder.rstrip("/"))
    except github.UnknownObjectException:
        return
    yield from listed if isinstance(listed, list) else ()


def _one(repository: Repository, path: str) -> ContentFile | None:
    try:
        file = repository.get_contents(path)
    except github.UnknownObjectException:
        return None
    return file if isinstance(file, ContentFile) else None
