"""Finds files that the commands of a set-up need and that the repository does not have.

Descriptions of an environment are often outdated. Only what a command certainly reads is
considered: programs and scripts that are run, requirements files, files that are copied. Commands
under a condition, and paths that an earlier command may have created, are left out.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from posixpath import basename, join, normpath

from resolver.runtime.environment.devcontainer import Read
from resolver.security.shell.syntax import Pipeline, PipelineStage, parse
from resolver.security.shell.words import plain_word, skip_assignments
from resolver.security.shell.wrappers import unwrapped

_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "source", "."})
_INTERPRETERS = frozenset({"python", "python3", "node", "ruby", "perl"})
_TESTS = frozenset({"[", "[[", "test", "command", "which", "type"})
_MADE = frozenset({"venv", ".venv", "env", "node_modules", "target", "build", "dist", "vendor"})
"""Folders that tools create without their name being given."""

_REQUIREMENTS = ("-r", "-c", "--requirement", "--constraint")
_DEEPEST = 3
"""Maximum depth of scripts that call scripts."""


@dataclass(frozen=True)
class MissingFile:
    """A file that is missing. by: the file whose command names it."""

    path: str
    by: str


@dataclass
class _ScriptContext:
    """State of reading a script.

    lost: the working folder is unknown. made: paths a command may create.
    """

    read: Read
    exists: Callable[[str], bool]
    folder: str = "."
    lost: bool = False
    made: set[str] = field(default_factory=set)


def missing_files(
    script: str, source: str, read: Read, exists: Callable[[str], bool]
) -> tuple[MissingFile, ...]:
    """Return the files that `script` needs when run in the repository's root and that are missing.

    source: the file that the script comes from.
    read: returns a file's content.
    exists: returns True if a path is a file or a folder of the repository.
    """
    walk = _ScriptContext(read, exists)
    return tuple(dict.fromkeys(_in_script(script, source, walk, 0)))


def _in_script(text: str, source: str, walk: _ScriptContext, depth: int) -> Iterator[MissingFile]:
    for stage in _unconditional(parse(text).pipelines):
        if walk.lost:
            return
        argv = unwrapped(tuple(plain_word(w) for w in skip_assignments(stage.words)) or ("",))[0]
        if argv[0] == "cd":
            _change_folder(argv, walk)
            continue
        script = _script_of(argv)
        for word in (*([script] if script else []), *_inputs(argv)):
            path = _inside(word, walk)
            if path is None or path.split("/")[0] in {*_MADE, *walk.made}:
                continue
            if not walk.exists(path):
                yield MissingFile(path, source)
            elif word == script and depth < _DEEPEST and _is_shell(path, walk.read):
                content = (walk.read(path) or b"").decode(errors="replace")
                folder = walk.folder
                yield from _in_script(content, path, walk, depth + 1)
                walk.folder, walk.lost = folder, False
        walk.made |= {p.split("/")[0] for w in argv[1:] if (p := _inside(w, walk)) is not None}


def _unconditional(pipelines: Sequence[Pipeline]) -> Iterator[PipelineStage]:
    """Yield the commands that run regardless of the result of other commands."""
    guarded = False
    joined = ""
    for pipeline in pipelines:
        behind = pipeline[-1].behind
        guarded = guarded if joined else False
        names = [stage.words[0] for stage in pipeline if stage.words]
        if names and names[0] in _TESTS:
            guarded = True
        if not guarded and "||" not in (joined, behind):
            for stage in pipeline:
                if stage.body is None:
                    yield stage
                elif stage.kind in {"{", "("}:
                    yield from _unconditional(stage.body)
        joined = behind if behind in {"&&", "||"} else ""


def _change_folder(argv: Sequence[str], walk: _ScriptContext) -> None:
    found = _inside(argv[1], walk) if len(argv) == 2 else None
    if found is None:
        walk.lost = True  # the folder of the following commands is unknown
    else:
        walk.folder = found


def _script_of(argv: Sequence[str]) -> str:
    """Return the file that a command runs, or "" for an installed program."""
    name = basename(argv[0])
    if name in _SHELLS or name in _INTERPRETERS:
        first = argv[1] if len(argv) > 1 else ""
        return first if "/" in first or "." in basename(first).strip(".") else ""
    return argv[0] if "/" in argv[0] else ""


def _inputs(argv: Sequence[str]) -> Iterator[str]:
    """Yield the files that a command certainly reads."""
    name = basename(argv[0])
    if name in {"pip", "pip3", "uv", "pip-sync"} or "pip" in argv[1:3]:
        for at, word in enumerate(argv):
            if word in _REQUIREMENTS and at + 1 < len(argv):
                yield argv[at + 1]
            elif word.startswith(tuple(f"{option}=" for option in _REQUIREMENTS[2:])):
                yield word.partition("=")[2]
            elif word.startswith(("-r", "-c")) and "." in word:
                yield word[2:]
    elif name in {"cp", "chmod"}:
        operands = [word for word in argv[1:] if not word.startswith("-")]
        yield from operands[:-1] if name == "cp" else operands[1:]


def _inside(word: str, walk: _ScriptContext) -> str | None:
    """Return the path from the repository's root, or None if the word is no path within it."""
    if not word or word.startswith(("-", "/", "~")) or set(word) & set("$`*?[]{}<>|;:=\n\"'"):
        return None
    path = normpath(join(walk.folder, word))
    return None if path.startswith("..") else path


def _is_shell(path: str, read: Read) -> bool:
    first = (read(path) or b"").split(b"\n", 1)[0]
    return path.endswith((".sh", ".bash")) or (first.startswith(b"#!") and b"sh" in first)
