"""Resolves the text of an import to files of the repository. Imports from elsewhere (the standard
library, other packages) resolve to no file."""

import posixpath
from collections import defaultdict
from collections.abc import Iterable

_SCRIPT_SUFFIXES = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".d.ts")
_MAX_FILES = 20
"""Maximum number of files that one import may resolve to; a Go package has many."""
_MAX_PARTS = 8
"""Maximum number of path components, including the file name, by which the end of a path is
indexed."""


class ImportResolver:
    """Resolves imports against the paths of all files."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._by_suffix: dict[str, str] = {}
        self._go_files: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self._paths, key=lambda p: (p.count("/"), p)):
            parts = path.split("/")
            for start in range(max(0, len(parts) - _MAX_PARTS), len(parts)):
                self._by_suffix.setdefault("/".join(parts[start:]), path)
            folder = posixpath.dirname(path)
            if path.endswith(".go") and not path.endswith("_test.go"):
                self._go_files[folder] += [path] * (len(self._go_files[folder]) < _MAX_FILES)

    def files(self, path: str, language: str, import_text: str) -> tuple[str, ...]:
        """Return the files that the file `path` imports by this text."""
        folder = posixpath.dirname(path)
        match language:
            case "python":
                files = self._python(folder, import_text)
            case "javascript" | "typescript" | "tsx":
                files = self._script(folder, import_text)
            case "go":
                files = self._go(import_text)
            case "java":
                files = self._file_with_suffix(f"{import_text.replace('.', '/')}.java")
            case "rust":
                files = self._rust(path, import_text)
            case "ruby":
                files = self._ruby(folder, import_text)
            case _:
                files = self._first_existing(
                    posixpath.join(folder, import_text)
                ) or self._file_with_suffix(import_text)
        return tuple(file for file in files if file != path)[:_MAX_FILES]

    def _first_existing(self, *candidates: str) -> list[str]:
        """Return the first candidate that exists."""
        normalized = (posixpath.normpath(candidate) for candidate in candidates)
        return next(([candidate] for candidate in normalized if candidate in self._paths), [])

    def _file_with_suffix(self, suffix: str) -> list[str]:
        """Return the file whose path ends like this; the one nearest to the root if there are
        several."""
        path = self._by_suffix.get(suffix)
        return [] if path is None else [path]

    def _python(self, folder: str, import_text: str) -> list[str]:
        module = import_text.lstrip(".")
        level = len(import_text) - len(module)
        module_path = module.replace(".", "/")
        if level:
            base = posixpath.normpath(posixpath.join(folder, *[".."] * (level - 1), module_path))
            return self._first_existing(f"{base}.py", f"{base}/__init__.py")
        return self._file_with_suffix(f"{module_path}.py") or self._file_with_suffix(
            f"{module_path}/__init__.py"
        )

    def _script(self, folder: str, import_text: str) -> list[str]:
        if not import_text.startswith("."):
            return []
        base = posixpath.join(folder, import_text)
        stem = base.removesuffix(".js")
        with_suffix = [f"{base}{suffix}" for suffix in _SCRIPT_SUFFIXES] + [
            f"{stem}{suffix}" for suffix in _SCRIPT_SUFFIXES
        ]
        return self._first_existing(
            base, *with_suffix, *(f"{base}/index{suffix}" for suffix in _SCRIPT_SUFFIXES)
        )

    def _go(self, import_text: str) -> list[str]:
        parts = import_text.split("/")[-_MAX_PARTS:]
        suffixes = ("/".join(parts[start:]) for start in range(len(parts)))
        return next((self._go_files[suffix] for suffix in suffixes if suffix in self._go_files), [])

    def _rust(self, path: str, import_text: str) -> list[str]:
        folder, file = posixpath.split(path)
        module_folder = (
            folder if file in {"mod.rs", "lib.rs", "main.rs"} else path.removesuffix(".rs")
        )
        if import_text.startswith("mod "):
            base = posixpath.join(module_folder, import_text[4:])
            return self._first_existing(f"{base}.rs", f"{base}/mod.rs")
        parts = import_text.split("::")[:_MAX_PARTS]
        if parts[0] in {"self", "super"}:
            start = module_folder if parts[0] == "self" else posixpath.dirname(module_folder)
            bases = [posixpath.join(start, *parts[1:count]) for count in range(len(parts), 1, -1)]
            return self._first_existing(*(f"{b}{e}" for b in bases for e in (".rs", "/mod.rs")))
        for count in range(len(parts), 1, -1):
            base = "/".join(("src", *parts[1:count]))
            if file_found := self._file_with_suffix(f"{base}.rs") or self._file_with_suffix(
                f"{base}/mod.rs"
            ):
                return file_found
        return []

    def _ruby(self, folder: str, import_text: str) -> list[str]:
        name = import_text if import_text.endswith(".rb") else f"{import_text}.rb"
        if import_text.startswith("."):
            return self._first_existing(posixpath.join(folder, name))
        return self._file_with_suffix(f"lib/{name}") or self._file_with_suffix(name)
