"""Resolves the text of an import to files of the repository. Imports from elsewhere (the standard
library, other packages) resolve to no file."""

import posixpath
from collections import defaultdict
from collections.abc import Iterable

_SCRIPT = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".d.ts")
_MOST_FILES = 20
"""Maximum number of files that one import may resolve to; a Go package has many."""
_MOST_PARTS = 8
"""Maximum number of path components, including the file name, by which the end of a path is
indexed."""


class ImportResolver:
    """Resolves imports against the paths of all files."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._by_end: dict[str, str] = {}
        self._go_files: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self._paths, key=lambda p: (p.count("/"), p)):
            parts = path.split("/")
            for start in range(max(0, len(parts) - _MOST_PARTS), len(parts)):
                self._by_end.setdefault("/".join(parts[start:]), path)
            folder = posixpath.dirname(path)
            if path.endswith(".go") and not path.endswith("_test.go"):
                self._go_files[folder] += [path] * (len(self._go_files[folder]) < _MOST_FILES)

    def files(self, path: str, language: str, words: str) -> tuple[str, ...]:
        """Return the files that the file `path` imports by this text."""
        folder = posixpath.dirname(path)
        match language:
            case "python":
                found = self._python(folder, words)
            case "javascript" | "typescript" | "tsx":
                found = self._script(folder, words)
            case "go":
                found = self._go(words)
            case "java":
                found = self._ending(f"{words.replace('.', '/')}.java")
            case "rust":
                found = self._rust(path, words)
            case "ruby":
                found = self._ruby(folder, words)
            case _:
                found = self._there(posixpath.join(folder, words)) or self._ending(words)
        return tuple(other for other in found if other != path)[:_MOST_FILES]

    def _there(self, *candidates: str) -> list[str]:
        """Return the first candidate that exists."""
        normal = (posixpath.normpath(c) for c in candidates)
        return next(([c] for c in normal if c in self._paths), [])

    def _ending(self, end: str) -> list[str]:
        """Return the file whose path ends like this; the one nearest to the root if there are
        several."""
        found = self._by_end.get(end)
        return [] if found is None else [found]

    def _python(self, folder: str, words: str) -> list[str]:
        module = words.lstrip(".")
        ups = len(words) - len(module)
        inner = module.replace(".", "/")
        if ups:
            base = posixpath.normpath(posixpath.join(folder, *[".."] * (ups - 1), inner))
            return self._there(f"{base}.py", f"{base}/__init__.py")
        return self._ending(f"{inner}.py") or self._ending(f"{inner}/__init__.py")

    def _script(self, folder: str, words: str) -> list[str]:
        if not words.startswith("."):
            return []
        base = posixpath.join(folder, words)
        stem = base.removesuffix(".js")
        ends = [f"{base}{s}" for s in _SCRIPT] + [f"{stem}{s}" for s in _SCRIPT]
        return self._there(base, *ends, *(f"{base}/index{s}" for s in _SCRIPT))

    def _go(self, words: str) -> list[str]:
        parts = words.split("/")[-_MOST_PARTS:]
        ends = ("/".join(parts[start:]) for start in range(len(parts)))
        return next((self._go_files[end] for end in ends if end in self._go_files), [])

    def _rust(self, path: str, words: str) -> list[str]:
        folder, file = posixpath.split(path)
        own = folder if file in {"mod.rs", "lib.rs", "main.rs"} else path.removesuffix(".rs")
        if words.startswith("mod "):
            base = posixpath.join(own, words[4:])
            return self._there(f"{base}.rs", f"{base}/mod.rs")
        parts = words.split("::")[:_MOST_PARTS]
        if parts[0] in {"self", "super"}:
            start = own if parts[0] == "self" else posixpath.dirname(own)
            found = [posixpath.join(start, *parts[1:n]) for n in range(len(parts), 1, -1)]
            return self._there(*(f"{b}{e}" for b in found for e in (".rs", "/mod.rs")))
        for n in range(len(parts), 1, -1):
            base = "/".join(("src", *parts[1:n]))
            if hit := self._ending(f"{base}.rs") or self._ending(f"{base}/mod.rs"):
                return hit
        return []

    def _ruby(self, folder: str, words: str) -> list[str]:
        name = words if words.endswith(".rb") else f"{words}.rb"
        if words.startswith("."):
            return self._there(posixpath.join(folder, name))
        return self._ending(f"lib/{name}") or self._ending(name)
