"""`devcontainer.json`: the image, the build and the command that a repository already describes.

Only what a sandbox needs is read. Source: https://containers.dev/implementors/json_reference/
"""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from posixpath import dirname, join, normpath
from typing import Any

import json5
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from resolver.errors import UsageError

FILES = (".devcontainer/devcontainer.json", ".devcontainer.json")

Read = Callable[[str], bytes | None]
"""A file's bytes by its path at the commit the work starts from, None when there is none."""

Lifecycle = str | list[str] | dict[str, str | list[str]]

_VARIABLE = re.compile(r"\$\{(\w+)(?::([^}]*))?\}")
_UNUSED = ("features", "dockerComposeFile", "initializeCommand", "mounts", "runArgs")
MOST_NESTED = 50


class _Build(BaseModel):
    model_config = ConfigDict(extra="ignore")

    dockerfile: str | None = None
    context: str = "."
    args: dict[str, str] = {}
    target: str | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="allow")

    image: str | None = None
    build: _Build | None = None
    docker_file: str | None = Field(default=None, alias="dockerFile")
    context: str = "."
    on_create: Lifecycle | None = Field(default=None, alias="onCreateCommand")
    update_content: Lifecycle | None = Field(default=None, alias="updateContentCommand")
    post_create: Lifecycle | None = Field(default=None, alias="postCreateCommand")


@dataclass(frozen=True)
class DevContainer:
    """What a repository's devcontainer asks for.

    path: the file it was read from. image, or dockerfile with its context (paths from the
    repository's root), build arguments and target. script: what prepares the container, as bash;
    "" when nothing does. unused: keys that are not acted on.
    """

    path: str
    image: str | None = None
    dockerfile: str | None = None
    context: str = "."
    args: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None
    script: str = ""
    unused: tuple[str, ...] = ()


def read_devcontainer(read: Read) -> DevContainer | None:
    """The repository's devcontainer, None when it has none.

    Variables of the person's machine (`${localEnv:...}`) are empty: nothing of this host goes in.
    Raises UsageError that names the file and the key.
    """
    for path in FILES:
        data = read(path)
        if data is not None:
            return _parse(path, data)
    return None


def _parse(path: str, data: bytes) -> DevContainer:
    content = _object(path, data)
    try:
        file = _File.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _wrong(path, f"{where}: {first['msg']}") from error
    build = file.build or _Build(dockerfile=file.docker_file, context=file.context)
    folder = dirname(path)
    commands = (file.on_create, file.update_content, file.post_create)
    return DevContainer(
        path=path,
        image=_filled(file.image) if file.image else None,
        dockerfile=_inside(path, folder, build.dockerfile) if build.dockerfile else None,
        context=_inside(path, folder, build.context),
        args={name: _filled(value) for name, value in build.args.items()},
        target=build.target,
        script="\n".join(line for command in commands for line in _lines(command)),
        unused=tuple(key for key in _UNUSED if content.get(key)),
    )


def _object(path: str, data: bytes) -> dict[str, Any]:
    """JSON with comments and trailing commas, as editors write it."""
    try:
        text = data.decode("utf-8-sig")
        if _depth(text) > MOST_NESTED:
            raise _wrong(path, "nested too deeply")
        content = json5.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise _wrong(path, "not a JSON object")
    return content


def _depth(text: str) -> int:
    deepest = depth = 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        deepest = max(deepest, depth)
    return deepest


def _lines(command: Lifecycle | None) -> list[str]:
    """A command as bash: text is a shell's line, a list is a program with arguments, and an
    object holds several, which here run one after the other."""
    match command:
        case None | "":
            return []
        case str():
            return [_filled(command)]
        case list():
            return [shlex.join(_filled(part) for part in command)] if command else []
        case dict():
            return [line for part in command.values() for line in _lines(part)]


def _filled(text: str) -> str:
    """`text` with the variables that mean the workspace put in, all others empty."""

    def value(match: re.Match[str]) -> str:
        name, rest = match[1], match[2] or ""
        if name in {"containerWorkspaceFolder", "localWorkspaceFolder"}:
            return "."
        if name in {"localEnv", "env"}:
            return rest.partition(":")[2]
        if name == "containerEnv":
            variable, _, default = rest.partition(":")
            return f"${{{variable}:-{default}}}" if variable.isidentifier() else default
        return ""

    return _VARIABLE.sub(value, text)


def _inside(path: str, folder: str, given: str) -> str:
    """A path from the repository's root. Raises UsageError for one that leaves the repository."""
    found = normpath(join(folder, _filled(given)))
    if found.startswith(("/", "../")) or found == "..":
        raise _wrong(path, f"{given} lies outside of the repository")
    return found


def _wrong(path: str, what: str) -> UsageError:
    return UsageError(f"{path}: {what}", "correct the file on the default branch")
