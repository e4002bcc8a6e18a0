"""Read small files of a repository's default branch over the API, without a clone."""

from collections.abc import Iterator

import github
from github.ContentFile import ContentFile
from github.Repository import Repository

LARGEST = 64_000
"""Maximum size of one file in bytes. Larger files are skipped."""


def markdown_files(repository: Repository, folder: str, most: int) -> dict[str, bytes]:
    """Return the Markdown files of a folder and the SKILL.md of each of its subfolders, by path.

    The result is empty when the folder does not exist. `most` is the maximum number of files; each
    costs one request.
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
    """Yield the entries of a folder; none when it does not exist."""
    try:
        listed = repository.get_contents(folder.rstrip("/"))
    except github.UnknownObjectException:
        return
    yield from listed if isinstance(listed, list) else ()


def _one(repository: Repository, path: str) -> ContentFile | None:
    """Return a file, or None when it does not exist."""
    try:
        file = repository.get_contents(path)
    except github.UnknownObjectException:
        return None
    return file if isinstance(file, ContentFile) else None
