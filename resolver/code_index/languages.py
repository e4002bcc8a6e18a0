"""Determines the language of a file by its name."""

from pathlib import PurePosixPath

_SUFFIXES = {
    ".py": "python", ".pyi": "python",
    ".js": "javascript", ".jsx": "javascript", ".mjs": "javascript", ".cjs": "javascript",
    ".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "tsx",
    ".go": "go", ".java": "java", ".rs": "rust", ".rb": "ruby",
    ".c": "c", ".h": "c++", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".hpp": "c++",
    ".hh": "c++",
}  # fmt: skip


def language_of(path: str) -> str | None:
    """Return the language; None if it is not supported."""
    return _SUFFIXES.get(PurePosixPath(path).suffix.lower())
