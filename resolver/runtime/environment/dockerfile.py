"""Finds and checks the images that a Dockerfile names, before it is built.

The engine's builder looks up a name among its local images first, and accepts hexadecimal digits as
the beginning of an image id. A build could thereby copy from images that the engine keeps for
another repository. So every name must be a name in a registry, and a Dockerfile that can't be read
with certainty is refused.
Syntax: https://docs.docker.com/reference/dockerfile/
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from resolver.config.image_reference import could_be_id, parse_registry_reference
from resolver.errors import UsageError

_CONTINUES: Final = re.compile(r"\\[ \t]*$")
_DIRECTIVE: Final = re.compile(r"#\s*escape\s*=(?!\s*\\\s*$)", re.IGNORECASE)
_HEREDOC: Final = re.compile(r"(?:^|\s)\d*<<-?[^\s<=]")
_QUOTING: Final = str.maketrans("", "", "\"'\\")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters. Programs differ in whether a line of nothing but such characters is empty."""

_FROM_ARGUMENT: Final = re.compile(
    r"(?:--[^\s\"'\\]+ )*(?:\"([^\s\"'\\]+)\"|([^\s\"'\\]+))(?: as ([^\s\"'\\]+))?", re.IGNORECASE
)
_ARGUMENT: Final = re.compile(
    r"([A-Za-z_][A-Za-z0-9_]*)(?:=(?:\"([^\"'\\]*)\"|'([^\"'\\$]*)'|([^\s\"'\\]*)))?(?: |$)"
)
"""The two patterns match what follows FROM and ARG, in the forms that have only one reading. Quotes
and backslashes within a word are excluded: where a variable's name ends would then depend on the
order in which they are processed."""

_COPY_FROM: Final = re.compile(r"--from=(\S*)", re.IGNORECASE)
_SPACE: Final = re.compile(r"[\t\v\f\r ]+")
_VARIABLE: Final = re.compile(
    r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::([-+])([^${}]*))?\})"
)
_MAX_EXPANDED: Final = 1_000


def read_base_images(path: str, text: str, args: Mapping[str, str]) -> tuple[str, ...]:
    """Return the base images of the Dockerfile's stages, as references to registries.

    args: build arguments.
    Raises UsageError for a name that is not a name in a registry, and for one that can't be read.
    """
    content = text.removeprefix("\ufeff")
    if match := _CONTROL.search(content):
        raise _unreadable_error(path, f"the character {match[0]!r}")
    if any(_DIRECTIVE.match(line.strip()) for line in content.split("\n")):
        raise _unreadable_error(path, "another escape character than \\")
    reader = _DockerfileReader(path, args)
    for line in _instructions(content):
        reader.take(line)
    return tuple(dict.fromkeys(reader.bases))


def refuse_triggers(path: str, image: str, triggers: Sequence[str]) -> None:
    """Raise UsageError if an `ONBUILD` instruction of a base image copies from an image.

    A base image adds such instructions to every build on it. Source:
    https://docs.docker.com/reference/dockerfile/#onbuild
    """
    for trigger in triggers:
        unquoted = trigger.translate(_QUOTING)
        if "from=" in unquoted.lower() or "\n" in trigger or "<<" in trigger or trigger[:1] == "#":
            raise UsageError(
                f"{path} is built from {image}, which adds `{trigger[:80]!r}` to each build",
                "build from an image that copies nothing from others with ONBUILD",
            )


class _DockerfileReader:
    """The state of reading a Dockerfile line by line."""

    def __init__(self, path: str, args: Mapping[str, str]) -> None:
        self.bases: list[str] = []
        self._path = path
        self._args = args
        self._values: dict[str, str] = {}
        self._stages: set[str] = set()
        self._stage = ""
        self._in_stage = False

    def take(self, line: str) -> None:
        """Process one instruction."""
        instruction, _, arguments = _SPACE.sub(" ", line.strip()).partition(" ")
        name = instruction.upper()
        while name == "ONBUILD":
            instruction, _, arguments = arguments.partition(" ")
            name = instruction.upper()
        if _HEREDOC.search(arguments) and name in {"RUN", "COPY", "ADD"}:
            raise _unreadable_error(self._path, "a here-document")
        match name:
            case "FROM":
                self._begin_stage(arguments)
            case "ARG" if not self._in_stage:
                self._declare(arguments)
            case "COPY" | "ADD":
                self._copy(arguments)

    def _begin_stage(self, arguments: str) -> None:
        """Begin a stage and check its base image.

        A stage can be referred to only after it has ended; until then its name refers to an image.
        """
        self._in_stage = True
        self._stages |= {self._stage} - {""}
        match = _FROM_ARGUMENT.fullmatch(arguments)
        if match is None:
            raise _unreadable_error(self._path, f"`FROM {arguments[:80]}`")
        image = self._expand(match[1] or match[2])
        if image.lower() not in {*self._stages, "scratch"}:
            self.bases.append(self._check(image, "FROM"))
        self._stage = (match[3] or "").lower()

    def _declare(self, arguments: str) -> None:
        position = 0
        while position < len(arguments):
            match = _ARGUMENT.match(arguments, position)
            if match is None or match[1] in self._values:
                raise _unreadable_error(self._path, f"`ARG {arguments[:80]}`")
            position = match.end()
            default = match[2] or match[3] or match[4] or ""
            self._values[match[1]] = self._args.get(match[1], self._expand(default))

    def _copy(self, arguments: str) -> None:
        for match in _COPY_FROM.finditer(arguments.translate(_QUOTING)):
            image = match[1]
            if not image.isdecimal() and image.lower() not in self._stages:
                self._check(image, "COPY --from")

    def _expand(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            variable = self._values.get(match[1] or match[2], "")
            if match[3]:
                return match[4] if bool(variable) == (match[3] == "+") else variable
            return variable

        expanded = _VARIABLE.sub(value, text)
        if "$" in expanded or len(expanded) > _MAX_EXPANDED:
            raise _unreadable_error(self._path, f"the name {text[:80]!r}")
        return expanded

    def _check(self, image: str, instruction: str) -> str:
        location = f"{self._path}, {instruction},"
        reference = parse_registry_reference(image, location)
        if could_be_id(image):
            raise UsageError(
                f"{location} names {image!r}, which an engine may take for the beginning of an "
                "image's id",
                f"write {reference} for the image of that name in its registry",
            )
        return reference


def _instructions(text: str) -> Iterator[str]:
    """Yield each instruction as one line. Comments and empty lines do not end a continued line."""
    joined = ""
    for line in text.split("\n"):
        content = line.rstrip("\r")
        if not content.strip() or content.lstrip().startswith("#"):
            continue
        continuation = _CONTINUES.search(content)
        joined += content[: continuation.start()] if continuation else content
        if continuation is None:
            yield joined
            joined = ""
    if joined:
        yield joined


def _unreadable_error(path: str, problem: str) -> UsageError:
    return UsageError(
        f"{path} has {problem}, so that Resolver can't tell which images its build uses",
        "write each image's name out, without here-documents; or build it yourself and name the "
        "image in the settings",
    )
