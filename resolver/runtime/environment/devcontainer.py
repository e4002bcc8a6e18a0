"""Reads `devcontainer.json`: the image, the build and the commands that a repository describes.

Only the parts that matter for a sandbox are read. Source:
https://containers.dev/implementors/json_reference/
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
"""Return a file's bytes by its path at the commit the work starts from, or None if there is none.
"""

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
    """The relevant parts of a repository's devcontainer.

    path: the file it was read from.
    image: name of the image, if it names one.
    dockerfile, context: paths of the Dockerfile and its build context from the repository's root.
    args, target: build arguments and build target.
    script: bash that prepares the container; "" if there is none.
    unused: keys in the file that have no effect here.
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
    """Return the repository's devcontainer, or None if it has none.

    Variables of the user's machine (`${localEnv:...}`) are replaced by their default or by nothing,
    so no value of this host is used. Raises UsageError that names the file and the key.
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
    """Parse JSON with comments and trailing commas, which editors accept in this file.

    Raises UsageError if it is no JSON object or is nested too deeply.
    """
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
    """Return a command as lines of bash.

    Text is a line for the shell, a list is a program with arguments, and an object holds several
    commands, which run one after the other here.
    """
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
    """Return `text` with its variables replaced.

    Variables of the workspace become ".", those of the container become shell variables, those of
    the user's machine become their default, and all others become "".
    """

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
    """Return a path from the repository's root; raises UsageError if it is outside of it."""
    found = normpath(join(folder, _filled(given)))
    if found.startswith(("/", "../")) or found == "..":
        raise _wrong(path, f"{given} lies outside of the repository")
    return found


def _wrong(path: str, what: str) -> UsageError:
    return UsageError(f"{path}: {what}", "correct the file on the default branch")
