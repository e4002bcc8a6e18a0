"""Names the files of a change to read first, and those that need special care."""

import re
from collections.abc import Sequence

from resolver.github.comments.comment_text import looks_like_scratch
from resolver.github.comments.titles import is_test_path
from resolver.github.text.markdown import code_span, shorten_text
from resolver.models.run import FileChange

_MAX_FILES_TO_START = 3
_MANIFESTS = {
    "package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "pyproject.toml",
    "setup.py", "setup.cfg", "poetry.lock", "uv.lock", "pipfile", "pipfile.lock", "go.mod",
    "go.sum", "cargo.toml", "cargo.lock", "gemfile", "gemfile.lock", "pom.xml", "build.gradle",
    "composer.json", "composer.lock", "dockerfile", "makefile",
}  # fmt: skip

_GENERATED = re.compile(
    r"(?:^|/)(?:dist|build|out|vendor|node_modules|third_party|__snapshots__|__generated__"
    r"|generated)/"
    r"|\.min\.(?:js|css)$|\.(?:map|snap)$|_pb2(?:_grpc)?\.pyi?$|\.pb\.(?:go|cc|h)$"
    r"|[._]g(?:en|enerated)?\.[a-z]+$",
    re.IGNORECASE,
)
"""Paths of files that programs write, in the conventions of common tools."""


def find_files_to_review(files: Sequence[FileChange]) -> tuple[list[str], list[str]]:
    """Return the files to read first, most changed first, and those that need careful review."""
    # Binary files are flagged in the table of files instead: nobody can start reading with one.
    readable = [file for file in files if file.additions is not None or file.status == "deleted"]
    code = [file for file in readable if _is_code(file) and file.status != "deleted"]
    code.sort(key=lambda f: -((f.additions or 0) + (f.deletions or 0)))
    careful = []
    for file in readable:
        name = file.path.rsplit("/", 1)[-1].lower()
        has_new_mode = file.new_mode != file.old_mode and file.status == "modified"
        reason = (
            "deleted"
            if file.status == "deleted" and not _is_generated(file.path)
            else "its mode changes"
            if has_new_mode
            else "a symlink"
            if file.new_mode == "120000"
            else "a submodule"
            if file.new_mode == "160000"
            else "how the project is built"
            if name in _MANIFESTS
            else ""
        )
        if reason:
            careful.append(f"{code_span(shorten_text(file.path, 200))} ({reason})")
    start = [code_span(shorten_text(file.path, 200)) for file in code[:_MAX_FILES_TO_START]]
    return (start if len(files) > 1 else []), careful[:10]


def _is_code(file: FileChange) -> bool:
    name = file.path.rsplit("/", 1)[-1].lower()
    is_prose = name.endswith((".md", ".rst", ".txt", ".adoc"))
    is_other = is_prose or name in _MANIFESTS or is_test_path(file.path)
    return not (is_other or looks_like_scratch(file) or _is_generated(file.path))


def _is_generated(path: str) -> bool:
    return _GENERATED.search(path) is not None
