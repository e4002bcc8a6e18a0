"""Proposes an environment for `resolver init`: an image and a set-up from one source.

A set-up is written for an image: what it relies on may be missing, or in another place, in the
image of another source. Descriptions of an environment are also often outdated: they need files
that the repository does not have. Only what a command certainly reads is considered: programs and
scripts that are run, requirements files, files that are copied. Commands under a condition, and
paths that an earlier command may have created, are left out.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from posixpath import basename, join, normpath

from resolver.config.image_reference import DEVCONTAINER
from resolver.errors import UsageError
from resolver.runtime.environment.images import requested_image
from resolver.runtime.environment.plan import (
    COPILOT,
    SCRIPTS,
    DevContainer,
    Read,
    read_devcontainer,
)
from resolver.runtime.environment.survey import Survey
from resolver.security.shell.syntax import Pipeline, PipelineStage, parse
from resolver.security.shell.wrappers import plain_word, skip_assignments, unwrap_command

_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "source", "."})
_INTERPRETERS = frozenset({"python", "python3", "node", "ruby", "perl"})
_CONDITIONS = frozenset({"[", "[[", "test", "command", "which", "type"})
_CREATED_FOLDERS = frozenset(
    {"venv", ".venv", "env", "node_modules", "target", "build", "dist", "vendor"}
)
"""Folders that tools create without their name being given."""

_REQUIREMENTS = ("-r", "-c", "--requirement", "--constraint")
_MAX_DEPTH = 3
"""Maximum depth of scripts that call scripts."""


@dataclass(frozen=True)
class MissingFile:
    """A file that is missing. by: the file whose command names it."""

    path: str
    by: str


@dataclass
class _ScriptContext:
    """State of reading a script.

    is_folder_unknown: the working folder is unknown. created: paths that a command may create.
    """

    read: Read
    exists: Callable[[str], bool]
    folder: str = "."
    is_folder_unknown: bool = False
    created: set[str] = field(default_factory=set)


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
        if walk.is_folder_unknown:
            return
        words = tuple(plain_word(word) for word in skip_assignments(stage.words))
        argv = unwrap_command(words or ("",))
        if argv[0] == "cd":
            _change_folder(argv, walk)
            continue
        script = _script_of(argv)
        for word in (*([script] if script else []), *_inputs(argv)):
            path = _path_in_repository(word, walk)
            if path is None or path.split("/")[0] in {*_CREATED_FOLDERS, *walk.created}:
                continue
            if not walk.exists(path):
                yield MissingFile(path, source)
            elif word == script and depth < _MAX_DEPTH and _is_shell(path, walk.read):
                content = (walk.read(path) or b"").decode(errors="replace")
                folder = walk.folder
                yield from _in_script(content, path, walk, depth + 1)
                walk.folder, walk.is_folder_unknown = folder, False
        walk.created |= {
            p.split("/")[0] for w in argv[1:] if (p := _path_in_repository(w, walk)) is not None
        }


def _unconditional(pipelines: Sequence[Pipeline]) -> Iterator[PipelineStage]:
    """Yield the commands that run regardless of the result of other commands."""
    is_conditional = False
    joined_by = ""
    for pipeline in pipelines:
        next_operator = pipeline[-1].next_operator
        is_conditional = is_conditional if joined_by else False
        names = [stage.words[0] for stage in pipeline if stage.words]
        if names and names[0] in _CONDITIONS:
            is_conditional = True
        if not is_conditional and "||" not in (joined_by, next_operator):
            for stage in pipeline:
                if stage.body is None:
                    yield stage
                elif stage.kind in {"{", "("}:
                    yield from _unconditional(stage.body)
        joined_by = next_operator if next_operator in {"&&", "||"} else ""


def _change_folder(argv: Sequence[str], walk: _ScriptContext) -> None:
    folder = _path_in_repository(argv[1], walk) if len(argv) == 2 else None
    if folder is None:
        walk.is_folder_unknown = True  # the folder of the following commands is unknown
    else:
        walk.folder = folder


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
        for index, word in enumerate(argv):
            if word in _REQUIREMENTS and index + 1 < len(argv):
                yield argv[index + 1]
            elif word.startswith(tuple(f"{option}=" for option in _REQUIREMENTS[2:])):
                yield word.partition("=")[2]
            elif word.startswith(("-r", "-c")) and "." in word:
                yield word[2:]
    elif name in {"cp", "chmod"}:
        operands = [word for word in argv[1:] if not word.startswith("-")]
        yield from operands[:-1] if name == "cp" else operands[1:]


def _path_in_repository(word: str, walk: _ScriptContext) -> str | None:
    """Return the path from the repository's root, or None if the word is no path within it."""
    if not word or word.startswith(("-", "/", "~")) or set(word) & set("$`*?[]{}<>|;:=\n\"'"):
        return None
    path = normpath(join(walk.folder, word))
    return None if path.startswith("..") else path


def _is_shell(path: str, read: Read) -> bool:
    first = (read(path) or b"").split(b"\n", 1)[0]
    return path.endswith((".sh", ".bash")) or (first.startswith(b"#!") and b"sh" in first)


NOTHING = "true"
"""A set-up that does nothing, used in place of one that would not work."""

_REQUIRED_KEYS = ("features", "dockerComposeFile")
"""Keys of a devcontainer without which its image lacks what its commands need."""


@dataclass(frozen=True)
class ProposedEnvironment:
    """The proposal.

    image, setup: values for the settings; setup is "" if the repository's own set-up is used.
    prepared_by: the file with the repository's own set-up.
    skip_reasons: why other files of the repository are not used.
    """

    image: str
    setup: str = ""
    prepared_by: str = ""
    skip_reasons: tuple[str, ...] = ()

    @property
    def installs(self) -> bool:
        """True if something may be installed, for which the sandbox needs a network."""
        return self.setup not in {"", NOTHING} or bool(self.prepared_by)


def propose_environment(
    survey: Survey, read: Read, exists: Callable[[str], bool]
) -> ProposedEnvironment:
    """Return the proposed environment for a repository.

    survey: the survey of its files, used if it describes no environment that can be used.
    exists: returns True if a path is a file or a folder of the repository.
    """
    for path in SCRIPTS:
        if read(path) is not None:
            return ProposedEnvironment(survey.image, prepared_by=path)
    for path in COPILOT:
        if read(path) is None:
            continue
        if not survey.setup:
            return ProposedEnvironment(survey.image, prepared_by=path)
        reason = f"{path} is written for GitHub's own runner, which is not an image"
        return ProposedEnvironment(survey.image, survey.setup, skip_reasons=(reason,))
    try:
        devcontainer = read_devcontainer(read)
        reasons = list(_reasons_against(devcontainer, survey, read, exists)) if devcontainer else []
    except UsageError as error:
        devcontainer, reasons = None, [error.what]
    if devcontainer is not None and not reasons:
        return ProposedEnvironment(DEVCONTAINER, prepared_by=devcontainer.path)
    setup = survey.setup or (NOTHING if reasons else "")
    return ProposedEnvironment(survey.image, setup, skip_reasons=tuple(map(_flatten, reasons)))


def _reasons_against(
    devcontainer: DevContainer, survey: Survey, read: Read, exists: Callable[[str], bool]
) -> Iterator[str]:
    """Yield the reasons, for people, why a devcontainer can't be used; nothing if it can."""
    for key in _REQUIRED_KEYS:
        if key in devcontainer.unused:
            yield f"{devcontainer.path} needs `{key}`, which Resolver does not act on"
    if not devcontainer.image and not devcontainer.dockerfile:
        if "dockerComposeFile" not in devcontainer.unused:
            yield f"{devcontainer.path} names neither an image nor a Dockerfile"
        return
    if devcontainer.dockerfile:
        if not exists(devcontainer.dockerfile):
            dockerfile = devcontainer.dockerfile
            yield f"{devcontainer.path} names {dockerfile}, which is not in the repository"
        yield (
            f"{devcontainer.path} builds its image, which the operator has to allow: set "
            f"`RESOLVER_IMAGE_OPTIONS={{build: true}}` and `image: {DEVCONTAINER}`"
        )
    else:
        requested_image(DEVCONTAINER, read)  # raises an error unless it is an image of a registry
    if not devcontainer.script and survey.setup:
        yield f"{devcontainer.path} installs nothing"
    for missing in missing_files(devcontainer.script, devcontainer.path, read, exists):
        yield f"{missing.by} names {missing.path}, which is not in the repository"


def _flatten(text: str) -> str:
    """Return the text without characters that would end a comment. It may hold names of files."""
    return "".join(c if c.isprintable() else "?" for c in text)
